package billing

import (
	"encoding/base64"

	"github.com/suanpan/suanpan/pkg/catalog"
)

func partyOf(name string, p *catalog.Party) *Party {
	out := &Party{
		Name: name, LegalName: p.LegalName, TaxID: p.TaxID, Registration: p.Registration,
		Email: p.Email, Phone: p.Phone,
	}
	if p.Address != (catalog.Address{}) {
		address := Address(p.Address)
		out.Address = &address
	}
	if p.Endpoint != (catalog.Endpoint{}) {
		endpoint := Endpoint(p.Endpoint)
		out.Endpoint = &endpoint
	}
	return out
}

func sellerParty(s *catalog.Seller) *Party {
	out := partyOf(s.Name, &s.Party)
	out.Website = s.Website
	if s.Bank != nil {
		bank := Bank(*s.Bank)
		out.Bank = &bank
	}
	if len(s.Logo) > 0 {
		out.Logo = base64.StdEncoding.EncodeToString(s.Logo)
	}
	return out
}

func buyerParty(b *catalog.Buyer) *Party {
	out := partyOf(b.Name, &b.Party)
	out.Reference = b.Reference
	return out
}
