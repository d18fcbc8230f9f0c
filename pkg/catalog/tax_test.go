package catalog

import "testing"

const taxes = `
{kind: PriceBook, name: public, currency: EUR, timezone: UTC, prices: []}
---
{kind: Seller, name: cn, legal_name: CN, timezone: UTC}
---
{kind: Seller, name: eu, legal_name: EU, timezone: UTC}
---
{kind: Tenant, name: fr, price_book: public, tax_id: FR1, address: {country: FR}}
---
{kind: Tenant, name: fr-private, price_book: public, address: {country: FR}}
---
{kind: Tenant, name: nowhere, price_book: public}
---
{kind: Tenant, name: embassy, price_book: public, tax_id: X, address: {country: FR}}
---
{kind: TaxRule, name: b-cn, seller: cn, category: S, rate: "6", inclusive: true}
---
{kind: TaxRule, name: a-cn, seller: cn, skus: ["license.*", gpu.a], category: S, rate: 13}
---
{kind: TaxRule, name: eu, seller: eu, buyer: {countries: [FR, DE]}, category: S, rate: "20"}
---
{kind: TaxRule, name: eu, seller: eu, buyer: {countries: [FR, DE]}, category: S, rate: "21.5",
  effective_from: "2026-03-01T00:00:00Z"}
---
{kind: TaxRule, name: reverse, priority: 5, seller: eu, buyer: {tax_id: present}, category: AE,
  reason: Reverse charge, reason_code: VATEX-EU-AE}
---
{kind: TaxRule, name: private, priority: 7, buyer: {tax_id: absent, tenants: [embassy]},
  category: Z}
---
{kind: TaxRule, name: embassy, priority: 6, buyer: {tenants: [embassy]}, category: E,
  reason: Embassy, reason_code: VATEX-EU-151}
`

func TestTax_highestPriorityThenFirstName(t *testing.T) {
	c := newCatalog(t, taxes)
	f := func(seller, tenant, sku, at, want string) {
		t.Helper()
		got := "none"
		buyer, _ := c.Buyer(tenant, second(t, at)) // nil where nobody is known
		if x, ok := c.Tax(seller, buyer, sku, second(t, at)); ok {
			got = x.Rule + " " + x.Category + " " + x.Rate.String() + " " + x.ReasonCode
			if x.Inclusive {
				got += "inclusive"
			}
		}
		if got != want {
			t.Errorf("%s sells %s to %s at %s: %s, want %s", seller, sku, tenant, at, got, want)
		}
	}
	const day = "2026-02-28T23:59:59Z"
	for range 20 { // whatever the order in which a map gives them
		f("cn", "fr", "gpu.a", day, "a-cn S 13 ")
	}
	f("cn", "fr", "license.x", day, "a-cn S 13 ")
	f("cn", "fr", "gpu.a800", day, "b-cn S 6 inclusive")
	f("eu", "fr", "gpu.a", day, "reverse AE 0 VATEX-EU-AE")
	f("eu", "fr-private", "gpu.a", day, "eu S 20 ")
	f("eu", "fr-private", "gpu.a", "2026-03-01T00:00:00Z", "eu S 21.5 ")
	f("eu", "nowhere", "gpu.a", day, "none")
	f("eu", "unknown", "gpu.a", day, "none")
	f("cn", "unknown", "gpu.b", day, "b-cn S 6 inclusive")
	f("eu", "embassy", "gpu.a", day, "embassy E 0 VATEX-EU-151")
}

func TestParse_taxRuleFailureSaysWhereWhyAndHowToMend(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := failure("kind: TaxRule\nname: x\n" + text + "\n"); got != want {
			t.Errorf("%s\nerror %s\nwant  %s", text, got, want)
		}
	}
	f("category: VAT", `c.yaml:3: category "VAT" is none of S, Z, E, AE, O, G, K, L, M (EN 16931; S `+
		`is the standard)`)
	f("category: S", `c.yaml:1: category S needs the field "rate", in percent`)
	f("category: M", `c.yaml:1: category M needs the field "rate", in percent`)
	f("category: S\nrate: 0.0",
		"c.yaml:1: category S needs a rate above 0: what is taxed at 0 is category Z")
	f("category: Z\nrate: 6", "c.yaml:1: category Z has the rate 0: leave the rate out, or choose S")
	f("category: S\nrate: 100.01", "c.yaml:4: rate 100.01 is above 100: it is in percent")
	f("category: S\nrate: 6.12345", "c.yaml:4: rate: 6.12345 has more than 4 decimals")
	f("category: S\nrate: 6%", `c.yaml:4: rate: "6%" is not a plain decimal such as 12.5`+"\n"+
		"c.yaml:1: category S needs a rate above 0: what is taxed at 0 is category Z")
	f("category: E\nreason: x", `c.yaml:1: category E needs the fields "reason" and "reason_code": why `+
		`there is no tax`)
	f("category: Z\nreason: x", "c.yaml:1: category Z has neither reason nor reason_code: they say "+
		"why there is no tax")
	f("category: Z\nbuyer: {countries: []}", "c.yaml:4: countries is empty: leave it out for all")
	f("category: Z\nbuyer: {tax_id: maybe}",
		`c.yaml:4: tax_id "maybe" is none of present, absent, any`)
	f("category: Z\nskus: []", "c.yaml:4: skus is empty: leave it out for all SKUs")
	f("category: Z\nseller: s\nbuyer: {tenants: [t]}",
		`c.yaml:1: TaxRule/x names seller "s", which is not in the catalog`+"\n"+
			`c.yaml:1: TaxRule/x names tenant "t", which is not in the catalog`)
}

func TestGrants_soonestExpiryFirst(t *testing.T) {
	grant := func(name, rest string) string {
		return "---\n{kind: Grant, name: " + name + ", amount: \"10\", " + rest + "}\n"
	}
	c := newCatalog(t, taxes+
		grant("never-b", "tenant: fr, currency: EUR, source: paid")+
		grant("never-a", "tenant: fr, currency: EUR, source: promo")+
		grant("late", `tenant: fr, currency: EUR, source: promo, expires: "2027-01-01T00:00:00Z"`)+
		grant("soon", `tenant: fr, currency: EUR, source: paid, expires: "2026-06-01T00:00:00.9Z"`)+
		grant("yen", "tenant: fr, currency: JPY, source: paid")+
		grant("other", "tenant: nowhere, currency: EUR, source: paid"))
	got := ""
	for _, g := range c.Grants("fr", "EUR") {
		got += g.Name + " " + g.Source + " "
	}
	if want := "soon paid late promo never-a promo never-b paid "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if at := c.Grants("fr", "EUR")[0].Expires; at != second(t, "2026-06-01T00:00:00Z") {
		t.Errorf("soon expires at %d", at)
	}
}
