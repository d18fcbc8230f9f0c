package audit

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// always is the start of a version that names none.
const always = math.MinInt64

type catalog struct {
	calendars map[string][]*calendar // by name, each list in the order of its starts
	tenants   map[string][]*tenant
	books     map[string][]*book
	contracts map[string][]*contract // by tenant; versions of all its contracts
	market    []marketPrice          // in the log's order
	sellers   map[string][]*seller
	taxRules  map[string][]*taxRule
	grants    []*grant
}

type calendar struct {
	from int64
	days map[string]bool
}

type tenant struct {
	from                         int64
	book, seller, country, taxID string
}

type contract struct {
	name, book, zone, seller string
	from, end                int64
}

type book struct {
	from           int64
	currency, zone string
	halfEven       bool
	bands          []band
	prices         []*price
}

type band struct {
	name, zone string
	when       []map[string]any
}

type price struct {
	book                       *book
	sku, purchase, region, per string
	amount, pack               *big.Rat
	increment, minimum         int64
	ladder                     *ladder
	floor, cap                 *big.Rat // of the market
	multipliers                map[string]string
}

type ladder struct {
	mode, window string
	tiers        []tier
}

type tier struct{ upTo, price *big.Rat }

type marketPrice struct {
	sku, region   string
	currency, per string // "" where it does not say
	at            time.Time
	price         *big.Rat
}

// fits says whether what the price states of currency and unit is the entry's.
func (m *marketPrice) fits(p *price) bool {
	return (m.currency == "" || m.currency == p.book.currency) && (m.per == "" || m.per == p.per)
}

// parseCatalog reads documents. It does not look for mistakes in them.
func parseCatalog(text []byte) (*catalog, error) {
	c := &catalog{
		map[string][]*calendar{},
		map[string][]*tenant{},
		map[string][]*book{},
		map[string][]*contract{},
		nil,
		map[string][]*seller{},
		map[string][]*taxRule{},
		nil,
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var node yaml.Node
		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read catalog: %w", err)
		}
		if doc, ok := plain(&node).(map[string]any); ok {
			c.add(doc)
		}
	}
	for _, l := range c.calendars {
		slices.SortStableFunc(l, func(a, b *calendar) int { return cmp.Compare(a.from, b.from) })
	}
	for _, l := range c.tenants {
		slices.SortStableFunc(l, func(a, b *tenant) int { return cmp.Compare(a.from, b.from) })
	}
	for _, l := range c.books {
		slices.SortStableFunc(l, func(a, b *book) int { return cmp.Compare(a.from, b.from) })
	}
	for _, l := range c.sellers {
		slices.SortStableFunc(l, func(a, b *seller) int { return cmp.Compare(a.from, b.from) })
	}
	for _, l := range c.taxRules {
		slices.SortStableFunc(l, func(a, b *taxRule) int { return cmp.Compare(a.from, b.from) })
	}
	for _, l := range c.contracts {
		slices.SortStableFunc(l, func(a, b *contract) int { return cmp.Compare(a.from, b.from) })
	}
	return c, nil
}

// plain turns YAML into maps, lists and texts; a number stays the text that it was written as.
func plain(n *yaml.Node) any {
	switch n.Kind {
	case yaml.DocumentNode:
		return plain(n.Content[0])
	case yaml.AliasNode:
		return plain(n.Alias)
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i < len(n.Content); i += 2 {
			m[n.Content[i].Value] = plain(n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		l := []any{}
		for _, item := range n.Content {
			l = append(l, plain(item))
		}
		return l
	default:
		return n.Value
	}
}

func (c *catalog) add(doc map[string]any) {
	name, from := text(doc, "name"), second(doc, "effective_from", always)
	switch text(doc, "kind") {
	case "Calendar":
		days := map[string]bool{}
		for _, d := range list(doc, "days") {
			days[d.(string)] = true
		}
		c.calendars[name] = append(c.calendars[name], &calendar{from, days})
	case "Tenant":
		c.tenants[name] = append(c.tenants[name], &tenant{
			from, text(doc, "price_book"), text(doc, "seller"),
			text(object(doc, "address"), "country"), text(doc, "tax_id"),
		})
	case "Contract":
		owner := text(doc, "tenant")
		c.contracts[owner] = append(c.contracts[owner], &contract{
			name, text(doc, "price_book"), text(doc, "timezone"), text(doc, "seller"),
			from, second(doc, "end", math.MaxInt64),
		})
	case "PriceBook":
		c.books[name] = append(c.books[name], newBook(doc, from))
	default:
		c.addMoney(doc, name, from)
	}
}

func newBook(doc map[string]any, from int64) *book {
	b := &book{
		from: from, currency: text(doc, "currency"), zone: text(doc, "timezone"),
		halfEven: text(doc, "rounding") == "half_even",
	}
	for _, item := range list(doc, "bands") {
		m := item.(map[string]any)
		made := band{name: text(m, "name"), zone: cmp.Or(text(m, "timezone"), b.zone)}
		for _, clause := range list(m, "when") {
			made.when = append(made.when, clause.(map[string]any))
		}
		b.bands = append(b.bands, made)
	}
	for _, item := range list(doc, "prices") {
		b.prices = append(b.prices, newPrice(b, item.(map[string]any)))
	}
	return b
}

func newPrice(b *book, m map[string]any) *price {
	p := &price{
		book: b, sku: text(m, "sku"), purchase: cmp.Or(text(m, "purchase"), "on_demand"),
		region: text(m, "region"), per: text(m, "per"), multipliers: map[string]string{},
		increment: seconds(cmp.Or(text(m, "increment"), "1s")),
		minimum:   seconds(cmp.Or(text(m, "minimum"), "0s")),
		amount:    number(m, "price"), pack: number(m, "package"),
	}
	if l, ok := m["ladder"].(map[string]any); ok {
		p.ladder = &ladder{mode: text(l, "mode"), window: cmp.Or(text(l, "window"), "period")}
		for _, t := range list(l, "tiers") {
			t := t.(map[string]any)
			p.ladder.tiers = append(p.ladder.tiers, tier{number(t, "up_to"), number(t, "price")})
		}
		p.amount = p.ladder.tiers[0].price
	}
	if market, ok := m["market"].(map[string]any); ok {
		p.floor, p.cap = number(market, "floor"), number(market, "cap")
		p.increment, p.minimum = 1, 0
	}
	if bands, ok := m["bands"].(map[string]any); ok {
		for name, rule := range bands {
			p.multipliers[name] = text(rule.(map[string]any), "multiplier")
		}
	}
	return p
}

func text(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

func list(m map[string]any, key string) []any {
	l, _ := m[key].([]any)
	return l
}

func object(m map[string]any, key string) map[string]any {
	o, _ := m[key].(map[string]any)
	return o
}

// number reads a decimal, nil if there is none.
func number(m map[string]any, key string) *big.Rat {
	if s := text(m, key); s != "" {
		return rat(s)
	}
	return nil
}

// second reads an instant and floors it.
func second(m map[string]any, key string, absent int64) int64 {
	s := text(m, key)
	if s == "" {
		return absent
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		panic("BUG: invalid catalog: " + err.Error())
	}
	return t.Unix()
}

// seconds reads a length of time, such as 60s or 1d.
func seconds(s string) int64 {
	n, err := strconv.ParseInt(s[:len(s)-1], 10, 64)
	if err != nil {
		panic("BUG: invalid catalog: " + err.Error())
	}
	return n * map[byte]int64{'s': 1, 'm': 60, 'h': 3600, 'd': 86400}[s[len(s)-1]]
}
