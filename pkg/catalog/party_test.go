package catalog

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"strings"
	"testing"
)

// failure returns all errors of a text, those of its documents together too.
func failure(text string) string {
	documents, err := Parse("c.yaml", []byte(text))
	if err == nil {
		_, err = New(documents)
	}
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestParse_partiesFailureSaysWhereWhyAndHowToMend(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := failure(text); got != want {
			t.Errorf("%s\nerror %s\nwant  %s", text, got, want)
		}
	}
	seller := func(text string) string {
		return "kind: Seller\nname: s\nlegal_name: S\ntimezone: UTC\n" + text + "\n"
	}
	f("kind: Seller\nname: s\n", `c.yaml:1: Seller needs the field "legal_name"`+"\n"+
		`c.yaml:1: Seller needs the field "timezone"`)
	f(seller("phone: ' '"), "c.yaml:5: phone is empty: write it, or leave the field out")
	f(seller(`phone: "1\n2"`),
		"c.yaml:5: phone has a character that cannot be printed, such as a line break")
	f(seller("phone: "+strings.Repeat("9", 257)), "c.yaml:5: phone has 257 bytes, more than 256")
	f(seller("address: {city: Berlin}"), `c.yaml:5: address needs the field "country"`)
	f(seller("address: {country: UK}"), `c.yaml:5: country "UK" is not in ISO 3166: write its two `+
		`letters, such as CN or DE`)
	f(seller("email: a@b@c"), `c.yaml:5: email "a@b@c" is not an e-mail address such as `+
		`billing@example.com`)
	f(seller("language: fr"), `c.yaml:5: language "fr" is neither en nor zh`)
	f(seller("endpoint: {scheme: 88, id: x}"), `c.yaml:5: scheme "88" is not of Peppol's list: four `+
		`digits such as 0088 or 9930, or two letters such as EM`)
	f(seller("series: {invoice: A-}"), `c.yaml:5: series "A-" is not a short name such as INV or `+
		`DE-INV: letters, digits and inner dashes, at most 16`)
	f(seller("series: {invoice: CN}"), `c.yaml:5: invoices and credit notes both have the series "CN": `+
		`their numbers would be the same, give them different ones`)
	f(seller("payment_days: 30d"), `c.yaml:5: payment_days "30d" is not a whole number from 0 to 365`)
	f(seller("payment_days: 99999999999999999999"),
		`c.yaml:5: payment_days "99999999999999999999" is not a whole number from 0 to 365`)
	f(seller("empty_invoices: 1"), `c.yaml:5: empty_invoices "1" is neither true nor false`)
	f(seller("hold_factor: 0.9"), "c.yaml:5: hold_factor 0.9 is below 1: it would hold usual invoices")
	f(seller("bank: {account: x, bic: BANK}"), `c.yaml:5: bic "BANK" is not a BIC such as DEUTDEFF `+
		`or ICBKCNBJSHI`)
	f(seller("accounts: {revenue: [{sku: 'g*u', account: a}]}"), `c.yaml:5: sku "g*u" is neither a `+
		`SKU nor how SKUs begin, with a * at its end, such as gpu.*`)
	f("kind: Tenant\nname: t\nprice_book: p\nseller: s\n",
		`c.yaml:1: Tenant/t names seller "s", which is not in the catalog`+"\n"+
			`c.yaml:1: Tenant/t names price book "p", which is not in the catalog`)
	f("{kind: Grant, name: g, tenant: t, amount: 1, currency: USD, source: paid}",
		`c.yaml:1: Grant/g names tenant "t", which is not in the catalog`)
	f("{kind: Grant, name: g, tenant: t, amount: 0, currency: USD, source: paid}",
		"c.yaml:1: amount must be above 0")
	grant := "kind: Grant\nname: g\ntenant: t\namount: 1\ncurrency: USD\nsource: paid\n"
	f(grant+"effective_from: 2026-01-01T00:00:00Z\nexpires: 2026-01-01T00:00:00Z\n",
		"c.yaml:8: the grant expires before it starts: give it a later expires")
	f(grant+"---\n"+grant+"effective_from: 2026-01-01T00:00:00Z\n", "c.yaml:8: Grant/g is given once "+
		"and has no further versions: give more by a grant of another name")
}

// pngOf is an empty picture in base64.
func pngOf(t *testing.T, width, height int) string {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

func TestParse_logoIsAWholePNG(t *testing.T) {
	f := func(logo, want string) {
		t.Helper()
		got := failure("kind: Seller\nname: s\nlegal_name: S\ntimezone: UTC\nlogo: " + logo + "\n")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%.60s: %s, want %s", logo, got, want)
		}
	}
	good := pngOf(t, 2000, 1999)
	f(good, "")
	f("|\n  "+good[:40]+"\n  "+good[40:], "")
	f(pngOf(t, 2001, 1), "c.yaml:5: logo has 2001 x 1 pixels, more than 2000: make a smaller PNG")
	f(pngOf(t, 1, 2001), "c.yaml:5: logo has 1 x 2001 pixels")
	f(good[:len(good)/8*4], "c.yaml:5: logo is not a whole PNG")
	f("aGVsbG8=", "c.yaml:5: logo is not a PNG")
	f("not*base64", "c.yaml:5: logo is not a PNG of at most 65536 bytes in base64")
	f(strings.Repeat("AAAA", 30_000), "c.yaml:5: logo has more than 65536 bytes")
}

const sellers = `
{kind: PriceBook, name: public, currency: CNY, timezone: UTC, prices: []}
---
{kind: Seller, name: cn, legal_name: CN, timezone: Asia/Shanghai}
---
{kind: Seller, name: cn, legal_name: CN2, timezone: Asia/Shanghai, payment_days: 14,
  effective_from: "2026-03-01T00:00:00Z"}
---
{kind: Tenant, name: acme, price_book: public}
`

const secondSeller = `---
{kind: Seller, name: eu, legal_name: EU, timezone: Europe/Berlin,
  effective_from: "2026-02-01T00:00:00Z", accounts: {revenue: [{sku: gpu.a, account: "1"},
  {sku: "gpu.*", account: "2"}, {sku: "*", account: "3"}]}}
---
{kind: Tenant, name: blue, price_book: public, seller: cn, reference: PO-7, tax_id: X}
---
{kind: Contract, name: c, tenant: blue, price_book: public, seller: eu,
  effective_from: "2026-02-01T00:00:00Z", end: "2026-04-01T00:00:00Z"}
---
{kind: Contract, name: early, tenant: blue, price_book: public, seller: eu,
  effective_from: "2026-01-01T00:00:00Z", end: "2026-02-01T00:00:00Z"}
`

func newCatalog(t *testing.T, text string) *Catalog {
	t.Helper()
	documents, err := Parse("c.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(documents)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSellerOf_contractsThenTenantsThenTheOnlyOne(t *testing.T) {
	var c *Catalog
	f := func(tenant, contract, at, want string) {
		t.Helper()
		s, err := c.SellerOf(tenant, contract, second(t, at))
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = s.LegalName
		}
		if got != want {
			t.Errorf("%s %q at %s: %s, want %s", tenant, contract, at, got, want)
		}
	}
	c = newCatalog(t, sellers)
	f("acme", "", "2026-02-28T23:59:59Z", "CN")
	f("acme", "", "2026-03-01T00:00:00Z", "CN2")
	c = newCatalog(t, sellers+secondSeller)
	f("acme", "", "2026-02-01T00:00:00Z", "tenant acme has no seller and there are several, cn, eu: "+
		"name one in the seller field of Tenant/acme")
	f("blue", "", "2026-02-01T00:00:00Z", "CN")
	f("blue", "c", "2026-02-01T00:00:00Z", "EU")
	f("blue", "c", "2026-05-01T00:00:00Z", "EU") // after its end
	f("blue", "c", "2026-01-31T23:59:59Z", "CN") // before its start
	f("blue", "early", "2026-01-02T00:00:00Z", `Contract/early names seller "eu", which the catalog `+
		`does not have at 2026-01-02T00:00:00Z: apply a Seller of that name with an earlier `+
		`effective_from`)
	c = Empty()
	f("acme", "", "2026-02-01T00:00:00Z",
		"tenant acme has no seller: apply a document of kind Seller")
}

func TestSeller_defaultsAndVersions(t *testing.T) {
	c := newCatalog(t, sellers+secondSeller)
	s, ok := c.Seller("cn", second(t, "2026-02-01T00:00:00Z"))
	if !ok || s.InvoiceSeries != "INV" || s.CreditNoteSeries != "CN" || s.PaymentDays != 30 ||
		s.HoldFactor.String() != "10" || s.EmptyInvoices || s.From != Always || s.Location == nil {
		t.Errorf("%+v, %v", s, ok)
	}
	s, _ = c.Seller("cn", second(t, "2026-03-01T00:00:00Z"))
	if s.PaymentDays != 14 {
		t.Errorf("the new version has %d days", s.PaymentDays)
	}
	eu, ok := c.Seller("eu", second(t, "2026-02-01T00:00:00Z"))
	if !ok {
		t.Fatal("eu does not sell")
	}
	for sku, want := range map[string]string{"gpu.a": "1", "gpu.b": "2", "cpu.core": "3"} {
		if got := eu.Accounts.RevenueAccount(sku); got != want {
			t.Errorf("%s earns to %s, want %s", sku, got, want)
		}
	}
	if got := s.Accounts.RevenueAccount("gpu.a"); got != "" {
		t.Errorf("no account is %q", got)
	}
	if _, ok := c.Seller("eu", second(t, "2026-01-31T23:59:59Z")); ok {
		t.Error("eu sells before it is there")
	}
	b, ok := c.Buyer("blue", second(t, "2026-02-01T00:00:00Z"))
	if !ok || b.Name != "blue" || b.Reference != "PO-7" || b.TaxID != "X" {
		t.Errorf("%+v, %v", b, ok)
	}
	contract := entry(t, "2026-01-01T00:00:00Z", "1",
		"{kind: Contract, name: x, tenant: announced, price_book: public}")
	if err := c.Add(contract.Document); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(c.Tenants(), " "); got != "acme blue" {
		t.Errorf("tenants %s", got)
	}
}
