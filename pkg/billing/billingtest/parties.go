package billingtest

import "github.com/suanpan/suanpan/pkg/billing"

// Rheinland is a German seller with everything that a seller can have.
func Rheinland() *billing.Party {
	return &billing.Party{
		Name: "rheinland", LegalName: "Rheinland Rechenwerk GmbH",
		Address: &billing.Address{
			Street: "Am Rechenbrett 12", City: "Köln", PostalCode: "50667", Country: "DE",
		},
		TaxID: "DE123456789", Registration: "HRB 98765",
		Endpoint: &billing.Endpoint{Scheme: "9930", ID: "DE123456789"},
		Email:    "rechnung@rheinland.example", Phone: "+49 221 5550123",
		Website: "https://rheinland.example",
		Bank: &billing.Bank{
			Name: "Bank am Dom", Account: "DE02120300000000202051", BIC: "BYLADEM1001",
			Holder: "Rheinland Rechenwerk GmbH",
		},
		Logo: encodedLogo(),
	}
}

// Nordlicht is a German buyer.
func Nordlicht() *billing.Party {
	return &billing.Party{
		Name: "nordlicht", LegalName: "Nordlicht Sprachmodelle AG",
		Address: &billing.Address{
			Street: "Hafenstraße 7", Line2: "Haus C", City: "Hamburg", PostalCode: "20457",
			Country: "DE",
		},
		TaxID: "DE987654321", Endpoint: &billing.Endpoint{Scheme: "9930", ID: "DE987654321"},
		Email: "einkauf@nordlicht.example", Reference: "PO-4711",
	}
}

// Moulin is a French buyer.
func Moulin() *billing.Party {
	return &billing.Party{
		Name: "moulin", LegalName: "Moulin à Données SARL",
		Address: &billing.Address{
			Street: "8 rue de l'Abaque", City: "Lyon", PostalCode: "69002", Country: "FR",
		},
		TaxID: "FR40303265045", Endpoint: &billing.Endpoint{Scheme: "9957", ID: "FR40303265045"},
		Email: "achats@moulin.example", Reference: "CMD-2026-88",
	}
}

// Straits is a seller of Singapore.
func Straits() *billing.Party {
	return &billing.Party{
		Name: "straits", LegalName: "Straits Compute Pte. Ltd.",
		Address: &billing.Address{
			Street: "1 Fusion Walk", Line2: "#12-08", City: "Singapore", PostalCode: "138628",
			Country: "SG",
		},
		TaxID: "SG202612345K", Registration: "202612345K",
		Endpoint: &billing.Endpoint{Scheme: "0195", ID: "SGUEN202612345K"},
		Email:    "billing@straits.example", Website: "https://straits.example",
		Bank: &billing.Bank{
			Name: "Harbour Bank", Account: "0123456789", BIC: "HARBSGSG",
			Holder: "Straits Compute Pte. Ltd.",
		},
		Logo: encodedLogo(),
	}
}

// Kestrel is a buyer of Singapore.
func Kestrel() *billing.Party {
	return &billing.Party{
		Name: "kestrel", LegalName: "Kestrel Robotics Pte. Ltd.",
		Address: &billing.Address{
			Street: "20 Ayer Rajah Crescent", City: "Singapore", PostalCode: "139964",
			Country: "SG",
		},
		TaxID: "SG201987654M", Endpoint: &billing.Endpoint{Scheme: "0195", ID: "SGUEN201987654M"},
		Email: "ap@kestrel.example", Reference: "KR-0098",
	}
}

// Sakura is a Japanese seller.
func Sakura() *billing.Party {
	return &billing.Party{
		Name: "sakura", LegalName: "Sakura Keisan K.K.",
		Address: &billing.Address{
			Street: "2-4-1 Otemachi", City: "Chiyoda-ku", Region: "Tokyo", PostalCode: "100-0004",
			Country: "JP",
		},
		TaxID: "T1234567890123", Email: "seikyu@sakura.example",
		Bank: &billing.Bank{Name: "Edo Bank", Account: "001-1234567", Holder: "Sakura Keisan K.K."},
	}
}

// Tanuki is a Japanese buyer.
func Tanuki() *billing.Party {
	return &billing.Party{
		Name: "tanuki", LegalName: "Tanuki Labs K.K.",
		Address: &billing.Address{
			Street: "1-1 Umeda", City: "Kita-ku", Region: "Osaka", PostalCode: "530-0001",
			Country: "JP",
		},
	}
}

// Hangzhou is a Chinese seller.
func Hangzhou() *billing.Party {
	return &billing.Party{
		Name: "suanli", LegalName: "杭州算力科技有限公司",
		Address: &billing.Address{
			Street: "文一西路969号", City: "杭州市", Region: "浙江省", PostalCode: "311121",
			Country: "CN",
		},
		TaxID: "91330100MA2B0XYZ1K", Email: "caiwu@suanli.example", Phone: "+86 571 5555 0123",
		Bank: &billing.Bank{
			Name: "钱塘银行杭州分行", Account: "1202 0226 0990 0123 456",
			Holder: "杭州算力科技有限公司",
		},
		Logo: encodedLogo(),
	}
}

// Shenzhen is a Chinese buyer.
func Shenzhen() *billing.Party {
	return &billing.Party{
		Name: "xingchen", LegalName: "深圳星辰智能有限公司",
		Address: &billing.Address{
			Street: "科技南十二路18号", City: "深圳市", Region: "广东省", PostalCode: "518057",
			Country: "CN",
		},
		TaxID: "91440300MA5F1ABC2D", Email: "fapiao@xingchen.example", Reference: "采购-2026-031",
	}
}

// Gulf is a seller of Kuwait, without a tax number.
func Gulf() *billing.Party {
	return &billing.Party{
		Name: "gulf", LegalName: "Gulf Abacus W.L.L.",
		Address: &billing.Address{
			Street: "Block 3, Street 14", City: "Kuwait City", PostalCode: "13001", Country: "KW",
		},
		Email: "accounts@gulf.example",
	}
}

// Pearl is a buyer of Kuwait, of whom little is known.
func Pearl() *billing.Party { return &billing.Party{Name: "pearl"} }
