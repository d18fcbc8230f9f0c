package rating

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
)

// LineItem is one row of the line_items view, in the view's order of columns. Decimals are text,
// times RFC 3339 in UTC, periods and days local.
type LineItem struct {
	Tenant          string            `json:"tenant"`
	Project         string            `json:"project"`
	Lease           string            `json:"lease"`
	Session         string            `json:"session"`
	Node            string            `json:"node"`
	Region          string            `json:"region"`
	SKU             string            `json:"sku"`
	Purchase        string            `json:"purchase"`
	Band            string            `json:"band"`
	UsageStart      string            `json:"usage_start"`
	UsageEnd        string            `json:"usage_end"`
	Day             string            `json:"day"`
	BillingPeriod   string            `json:"billing_period"`
	UsagePeriod     string            `json:"usage_period"`
	Kind            string            `json:"kind"`
	Labels          map[string]string `json:"labels"`
	BaseQuantity    string            `json:"base_quantity"`
	BaseUnit        string            `json:"base_unit"`
	UnitPrice       string            `json:"unit_price"`
	Per             string            `json:"per"`
	ListAmount      string            `json:"list_amount"`
	Amount          string            `json:"amount"`
	EffectiveAmount string            `json:"effective_amount"`
	Currency        string            `json:"currency"`
}

// items unfolds rows into line items.
type items struct {
	charges map[Charge]*charged
	out     []item
}

// charged is a settled charge and what its line items have come to so far.
type charged struct {
	*Settled
	sum           money.Amount
	start, end    int64
	day           int64
	first         bool
	billingPeriod string
}

type item struct {
	LineItem
	start int64
}

func newItems(settled []Settled) *items {
	it := &items{charges: make(map[Charge]*charged, len(settled))}
	for i := range settled {
		s := &settled[i]
		it.charges[s.Charge] = &charged{Settled: s, first: true}
	}
	return it
}

func (it *items) held(row *Row, s *Segment, f *metering.Facts) {
	it.add(s.Charge, s.Quantity(row.Milli), row.Hour+int64(s.From), row.Hour+int64(s.To), s.Day,
		s.Billing, LineItem{
			Project: f.Project, Lease: f.Lease, Session: row.Session, Node: f.Node, Region: f.Region,
			Kind: s.Kind.String(), Labels: labelMap(f.Labels),
		})
}

func (it *items) consumed(row *ConsumedRow) {
	it.add(row.Charge, row.Nano, row.At, row.At, row.Day, row.Billing, LineItem{
		Project: row.Project, Region: row.Region, Kind: "usage", Labels: labelMap(row.Labels),
	})
}

// add completes a line item. Its amount is its part of the charge's, cut to the scale of money;
// finish adds what cutting leaves.
func (it *items) add(c *Charge, q metering.Quantity, start, end, day int64, billing string,
	i LineItem,
) {
	of := it.charges[*c]
	amount := money.Amount{}
	if of.Quantity.Sign() != 0 {
		amount = of.Amount.MulRatio(q.Big(), of.Quantity.Big(), money.Scale, money.Down)
	}
	of.sum = of.sum.Add(amount)
	if of.first {
		of.start, of.end, of.day, of.billingPeriod, of.first = start, end, day, billing, false
	}
	of.start, of.end, of.day = min(of.start, start), max(of.end, end), min(of.day, day)
	of.billingPeriod = min(of.billingPeriod, billing)
	i.BaseQuantity = q.String()
	i.BillingPeriod = billing
	list := of.UnitPrice.MulRatio(q.Big(), of.ListNano, money.Scale, money.Down)
	it.put(of, i, amount, list, start, end, day)
}

func (it *items) put(of *charged, i LineItem, amount, list money.Amount, start, end, day int64) {
	i.Tenant, i.SKU, i.Purchase, i.Band = of.Tenant, of.SKU, of.Purchase, of.Band
	i.UsageStart, i.UsageEnd, i.Day = clock(start), clock(end), date(day)
	i.UsagePeriod, i.BaseUnit = of.Period, of.BaseUnit
	i.UnitPrice, i.Per, i.Currency = of.UnitPrice.String(), of.Per.Name, of.Currency
	i.ListAmount = list.Fixed(money.Scale)
	i.Amount = amount.Fixed(money.Scale)
	i.EffectiveAmount = i.Amount
	it.out = append(it.out, item{i, start})
}

// finish adds the rows for what rounding leaves and puts all into their order.
func (it *items) finish() []LineItem {
	for _, of := range it.charges {
		rest := of.Amount.Sub(of.sum)
		if rest.Sign() == 0 {
			continue
		}
		it.put(of, LineItem{
			Kind: "rounding", Region: of.Charge.Region, Labels: map[string]string{},
			BaseQuantity: metering.Quantity{}.String(), BillingPeriod: of.billingPeriod,
		}, rest, money.Amount{}, of.start, of.end, of.day)
	}
	slices.SortFunc(it.out, compareItems)
	out := make([]LineItem, len(it.out))
	for i := range it.out {
		out[i] = it.out[i].LineItem
	}
	return out
}

func labelMap(labels []metering.Label) map[string]string {
	m := make(map[string]string, len(labels))
	for _, l := range labels {
		m[l.Key] = l.Value
	}
	return m
}

func clock(second int64) string { return time.Unix(second, 0).UTC().Format(time.RFC3339) }

func date(day int64) string { return time.Unix(day*86_400, 0).UTC().Format(time.DateOnly) }

// compareItems orders line items by all that they say, so that rows which come in no order, as
// those of a map, give the same list each time.
func compareItems(a, b item) int {
	if order := cmp.Or(cmp.Compare(a.Tenant, b.Tenant),
		cmp.Compare(a.BillingPeriod, b.BillingPeriod),
		cmp.Compare(a.start, b.start), cmp.Compare(a.Session, b.Session),
		cmp.Compare(a.SKU, b.SKU), cmp.Compare(a.Purchase, b.Purchase),
		cmp.Compare(a.Band, b.Band), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.UnitPrice, b.UnitPrice), cmp.Compare(a.Project, b.Project),
		cmp.Compare(a.BaseQuantity, b.BaseQuantity), cmp.Compare(a.UsageEnd, b.UsageEnd),
		cmp.Compare(a.Region, b.Region)); order != 0 {
		return order
	}
	return cmp.Or(cmp.Compare(a.Amount, b.Amount), cmp.Compare(a.Currency, b.Currency),
		cmp.Compare(a.UsagePeriod, b.UsagePeriod), cmp.Compare(a.Per, b.Per),
		cmp.Compare(fmt.Sprintf("%q", a.Labels), fmt.Sprintf("%q", b.Labels)))
}
