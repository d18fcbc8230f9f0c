package catalog

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const goodBook = `kind: PriceBook
name: public
currency: CNY
timezone: Asia/Shanghai
`

func TestParse_failureSaysWhereAndWhy(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		documents, err := Parse("c.yaml", []byte(text))
		if err == nil {
			_, err = New(documents)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nerror %v\nwant  %s", text, err, want)
		}
	}
	price := func(text string) string { return goodBook + "prices:\n- " + text + "\n" }
	f("name: x\n", `c.yaml:1: kind "" is none of Calendar, PriceBook, Seller, Tenant, `)
	f("- a\n", "c.yaml:1: a document is a mapping")
	f("kind: Tenant\nname: x\n", `c.yaml:1: Tenant needs the field "price_book"`)
	f("kind: Tenant\nname: x y\nprice_book: p\n", `c.yaml:2: name "x y" is not a name`)
	f("kind: Tenant\nname: x\nname: y\nprice_book: p\n", `c.yaml:3: Tenant has "name" twice`)
	f("kind: Tenant\nname: x\nprice_book: p\nnote: z\n", `c.yaml:4: Tenant has no field "note"`)
	f("kind: Tenant\nname: x\nprice_book: p\n", `c.yaml:1: Tenant/x names price book "p", which`)
	f("kind: Tenant\nname: &a x\nprice_book: *a\n", "c.yaml:2: anchors and aliases are not allowed")
	f("kind: Tenant\nname: x\nprice_book: p\neffective_from: soon\n",
		`c.yaml:4: effective_from: "soon"`)
	f("kind: Calendar\nname: c\ndays: [2026-02-30]\n", `c.yaml:3: day "2026-02-30" is not a date`)
	f(strings.Replace(goodBook, "CNY", "RMB", 1)+"prices: []\n", `c.yaml:3: currency "RMB"`)
	f(strings.Replace(goodBook, "Asia/Shanghai", "Local", 1)+"prices: []\n",
		`c.yaml:4: timezone "Local"`)
	f(price("{sku: a, per: week, price: 1}"), `c.yaml:6: per "week" is none of`)
	f(price("{sku: a, per: hour, price: 1e3}"), `c.yaml:6: price: "1e3" is not a plain decimal`)
	f(price("{sku: a, per: hour, price: -1}"), `c.yaml:6: price: "-1" is not a plain decimal`)
	f(price("{sku: a, per: hour}"), "c.yaml:6: a price needs one of price, ladder, market")
	f(price("{sku: a, per: hour, price: 1}\n- {sku: a, per: day, price: 1}"),
		"c.yaml:7: there are two prices for a on_demand")
	f(price("{sku: a, per: hour, price: 1, increment: 1.5s}"), `increment "1.5s" is not a duration`)
	f(price("{sku: a, per: hour, price: 1, minimum: 32d}"), `minimum "32d" is longer than 31d`)
	f(price("{sku: a, per: hour, price: 1, increment: 0s}"), "increment is at least 1s")
	f(price("{sku: a, per: unit, price: 1, minimum: 60s}"), "increment and minimum are for prices of")
	f(price("{sku: a, per: hour, price: 1, bands: {night: {multiplier: 1}}}"), `no band "night"`)
	f(price("{sku: a, per: hour, price: 2, ladder: {mode: volume, tiers: [{price: 1}]}}"),
		"price 2 beside a ladder must equal its first tier, 1")
	f(price("{sku: a, per: hour, ladder: {mode: volume, tiers: []}}"), "a ladder needs tiers")
	f(price("{sku: a, per: hour, ladder: {mode: steep, tiers: [{price: 1}]}}"), `mode "steep"`)
	f(price("{sku: a, per: hour, ladder: {mode: volume, tiers: [{price: 1}, {price: 2}]}}"),
		"only the last tier has no up_to")
	f(price("{sku: a, per: hour, ladder: {mode: volume, tiers: [{up_to: 1, price: 1}]}}"),
		"the last tier has no up_to: the ladder would end there")
	f(price("{sku: a, per: hour, ladder: {mode: volume, tiers: [{up_to: 0, price: 1}, {price: 1}]}}"),
		"up_to must be above 0")
	f(price("{sku: a, purchase: spot, per: hour, market: {floor: 0.5, cap: 0.2}}"),
		"floor 0.5 is above cap 0.2")
	f(price("{sku: a, purchase: spot, per: hour, market: {floor: 0.1, cap: 0.2}}"),
		"market price of a spot has no on_demand price to be a fraction of")
	f(price("{sku: a, per: day, price: 1}\n- {sku: a, purchase: spot, per: hour, "+
		"market: {floor: 0.1, cap: 0.2}}"), "is per hour, its on_demand price per day")
	bands := func(text string) string { return goodBook + "bands:\n- " + text + "\nprices: []\n" }
	f(bands(`{name: standard, when: [{from: "01:00", to: "02:00"}]}`), "the name standard is for")
	f(bands(`{name: n, when: [{from: "02:00", to: "02:00"}]}`), "from equals to")
	f(bands(`{name: n, when: [{from: "2:00", to: "03:00"}]}`), `from "2:00" is not a time of day`)
	f(bands(`{name: n, when: [{days: [mon]}]}`), "a clause has from and to, or calendar")
	f(bands(`{name: n, when: [{calendar: c, days: [mon]}]}`), "calendar stands alone")
	f(bands(`{name: n, when: [{calendar: c}]}`), `names calendar "c", which is not in the catalog`)
	f(bands(`{name: n, when: []}`), "a band needs a clause")
	f(goodBook+"prices: []\n---\n"+strings.Replace(goodBook, "CNY", "USD", 1)+
		"effective_from: 2027-01-01T00:00:00Z\nprices: []\n", "cannot become USD in Asia/Shanghai")
	f(goodBook+"prices: []\n---\n"+goodBook+"rounding: half_even\nprices: []\n",
		"a version is immutable")
	const tenant = "---\nkind: Tenant\nname: t\nprice_book: public\n"
	contract := func(name, from string) string {
		return "---\n{kind: Contract, name: " + name + ", tenant: t, price_book: public, " +
			"effective_from: " + from + "}\n"
	}
	f(goodBook+"prices: []\n"+tenant+contract("a", "2026-01-01T00:00:00Z")+
		contract("b", "2026-02-01T00:00:00Z"), "contracts a and b of tenant t hold at one instant")
}

func TestParse_canonicalFormIsTheSameDocument(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "deployments", "example", "catalog.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	documents, err := Parse("catalog.yaml", data)
	if err != nil || len(documents) < 10 {
		t.Fatalf("%d documents, %v", len(documents), err)
	}
	for _, d := range documents {
		again, err := Parse("again", d.JSON)
		if err != nil || len(again) != 1 || !bytes.Equal(again[0].JSON, d.JSON) ||
			again[0].From != d.From || again[0].ID() != d.ID() {
			t.Errorf("%s becomes %+v, %v", d.ID(), again, err)
		}
	}
}

// FuzzParse: no panic; what is accepted has a canonical form that parses to the same form, and a
// catalog of it answers.
func FuzzParse(f *testing.F) {
	f.Add([]byte(goodBook + "prices:\n- {sku: a, per: hour, price: \"1.50\"}\n"))
	f.Add([]byte("kind: Calendar\nname: c\ndays: [\"2026-01-01\"]\n---\nkind: Tenant\nname: t\n" +
		"price_book: p\n"))
	f.Add([]byte("{kind: Contract, name: c, tenant: t, price_book: p}"))
	f.Add([]byte(bookThatNames))
	f.Add([]byte(sellers + secondSeller))
	f.Add([]byte(taxes))
	f.Add([]byte(budgets))
	f.Add([]byte(boundCatalog))
	f.Add([]byte("{kind: Grant, name: g, tenant: t, amount: 1, currency: USD, source: promo, " +
		"expires: \"2027-01-01T00:00:00Z\"}"))
	f.Add([]byte("{kind: Policy, name: p, type: price_low, thresholds: {days: 7}, notify: " +
		"[{webhook: \"https://example.com\", secret: s}, {email: a@b}, {log: true}]}"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		documents, err := Parse("f", data)
		if err != nil {
			return
		}
		for _, d := range documents {
			again, err := Parse("again", d.JSON)
			if err != nil || len(again) != 1 || !bytes.Equal(again[0].JSON, d.JSON) {
				t.Fatalf("%s does not parse to itself: %v", d.JSON, err)
			}
		}
		if c, err := New(documents); err == nil {
			ask(c)
		}
	})
}

// ask asks a catalog for all that it answers.
func ask(c *Catalog) {
	const at = 1_800_000_000
	_, _ = c.Quote(Query{Tenant: "t", SKU: "a"}, at)
	for _, tenant := range c.Tenants() {
		_, _ = c.SellerOf(tenant, "c", at)
		_ = c.Grants(tenant, "USD")
		buyer, _ := c.Buyer(tenant, at)
		_, _ = c.Tax("cn", buyer, "gpu.a", at)
		for _, b := range c.Bindings(tenant) {
			_, _, _ = c.PeriodBounds(tenant, b.Contract, "2027-01")
		}
	}
	for _, b := range c.Budgets(at) {
		_ = b.Amount.String()
	}
	for _, p := range c.Policies(at) {
		for _, threshold := range Thresholds(p.Type) {
			_ = p.Threshold(threshold.Name)
		}
		if p.QuietHours != nil {
			_ = p.QuietHours.Holds(at)
		}
	}
}

func TestPriceBook_memoryOfSKUs(t *testing.T) {
	c := newCatalog(t, `
{kind: PriceBook, name: b, currency: CNY, timezone: UTC,
  skus: [{sku: gpu.a800-80g, memory_gib: 80}, {sku: gpu.a10, memory_gib: "24"}],
  prices: [{sku: gpu.a10, per: hour, price: "3"}, {sku: cpu, per: hour, price: "1"},
    {sku: gpu.a10, purchase: spot, per: hour, market: {floor: "0.1", cap: "1"}}]}
`)
	v, _ := c.BookVersion("b", Always)
	for sku, want := range map[string]int64{"gpu.a800-80g": 80 << 10, "gpu.a10": 24 << 10, "cpu": 0} {
		if got := v.MemoryMiB(sku); got != want {
			t.Errorf("%s has %d MiB, want %d", sku, got, want)
		}
	}
	var got []string
	for _, p := range v.Prices() {
		got = append(got, p.SKU+" "+p.Purchase)
	}
	if text := strings.Join(got, ", "); text != "cpu on_demand, gpu.a10 on_demand, gpu.a10 spot" {
		t.Errorf("there are prices for %s", text)
	}
	f := func(text, want string) {
		t.Helper()
		got := failure("{kind: PriceBook, name: b, currency: CNY, timezone: UTC, prices: [],\nskus: " +
			text + "}")
		if got != want {
			t.Errorf("%s\nerror %s\nwant  %s", text, got, want)
		}
	}
	f("[{sku: a}]", `c.yaml:2: SKU needs the field "memory_gib"`)
	f("[{sku: a, memory_gib: 0}]",
		`c.yaml:2: memory_gib "0" is not a whole number from 1 to 1048576`)
	f("[{sku: a, memory_gib: 1}, {sku: a, memory_gib: 1}]", "c.yaml:2: skus has a twice")
}
