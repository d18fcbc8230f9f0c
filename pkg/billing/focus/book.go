package focus

import (
	"cmp"
	"fmt"
	"math/big"
	"time"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/money"
)

// Why there is an adjustment, in x_Reason.
const (
	rounding     = "rounding"
	averagePrice = "average_price"
	includedTax  = "included_tax"
	notBilled    = "not_billed"
	noItems      = "no_line_items"
)

// The categories of charges.
const (
	usage      = "Usage"
	purchase   = "Purchase"
	tax        = "Tax"
	credit     = "Credit"
	adjustment = "Adjustment"
)

const correction = "Correction"

// book is what the line items are held against.
type book struct {
	invoices map[billing.Key]*account
	credits  map[chargeKey]*account // late ones, by what they give back
	groups   map[groupKey]*group
	order    []*group // as they came
}

func newBook() *book {
	return &book{
		invoices: make(map[billing.Key]*account), credits: make(map[chargeKey]*account),
		groups: make(map[groupKey]*group),
	}
}

// chargeKey names usage of a period.
type chargeKey struct {
	billing.Key
	sku, purchase, band string
}

// lateKey is the key of usage of an earlier period than that of a document.
func lateKey(k billing.Key, usagePeriod, sku, purchase, band string) chargeKey {
	k.Period = usagePeriod
	return chargeKey{k, sku, purchase, band}
}

// account is what the rows of one document share.
type account struct {
	base row
	zone *time.Location
	unit money.Amount // the smallest of the currency
	sign money.Amount // -1 for a credit note
}

// groupKey names the usage of a line of a document, or of a detail of one.
type groupKey struct {
	of                               *account
	usagePeriod, sku, purchase, band string
}

// group is the usage of a line: what its line items come to, and what the document says.
type group struct {
	groupKey
	billed bool         // whether the document has such a line
	detail string       // its InvoiceDetailId
	pack   string       // units that are sold together
	amount money.Amount // of the document, with the tax that it includes
	net    money.Amount // without it
	exact  money.Amount // unrounded
	sum    money.Amount // of the line items
	items  bool         // whether there are any
}

// add expects the line items of a line.
func (b *book) add(a *account, l *billing.Line, detail string) {
	k := groupKey{a, l.UsagePeriod, l.SKU, l.Purchase, l.Band}
	g := b.group(k)
	g.billed, g.detail, g.pack = true, detail, l.Package
	g.amount = g.amount.Add(a.signed(l.Amount))
	g.net, g.exact = g.net.Add(a.signed(l.Net)), g.exact.Add(a.signed(l.Exact))
}

func (b *book) group(k groupKey) *group {
	g := b.groups[k]
	if g == nil {
		g = &group{groupKey: k}
		b.groups[k], b.order = g, append(b.order, g)
	}
	return g
}

// find returns the document that a line item is on: a credit note for an earlier period that became
// cheaper, else the invoice; nil where there is none.
func (b *book) find(i *Item) *account {
	key := billing.Key{
		Tenant: i.Tenant, Contract: i.Contract, Currency: i.Currency, Period: i.BillingPeriod,
	}
	if i.UsagePeriod != i.BillingPeriod {
		if a := b.credits[lateKey(key, i.UsagePeriod, i.SKU, i.Purchase, i.Band)]; a != nil {
			return a
		}
	}
	return b.invoices[key]
}

// reason says why a line is not what its line items come to: they are rounded, or at the average
// price of all usage of the ladder, that which came after the document too; or one is without the
// other.
func (g *group) reason() string {
	over := g.exact.Sub(g.sum)
	if over.Sign() < 0 {
		over = over.Neg()
	}
	switch {
	case !g.billed:
		return notBilled
	case !g.items:
		return noItems
	case over.Cmp(g.of.unit) >= 0:
		return averagePrice
	}
	return rounding
}

// signed is an amount of the document as its rows have it. It was checked before.
func (a *account) signed(amount string) money.Amount {
	parsed, err := money.ParseSigned(amount)
	if err != nil {
		panic("BUG: an amount that was checked is " + err.Error())
	}
	return parsed.Mul(a.sign)
}

// account begins the rows of a document.
func (e *export) account(d *billing.Document) (*account, error) {
	zone, err := time.LoadLocation(d.Timezone)
	if err != nil {
		return nil, fmt.Errorf("find time zone: %w", err)
	}
	digits, ok := money.Digits(d.Currency)
	if !ok {
		return nil, fmt.Errorf("%q is no currency", d.Currency)
	}
	a := &account{zone: zone, unit: money.New(big.NewInt(1), digits), sign: money.MustParse("1")}
	r := &a.base
	e.common(r, d.Tenant, d.Contract, d.Currency, zone)
	if d.Seller != nil {
		r.provided(cmp.Or(d.Seller.LegalName, d.Seller.Name))
	}
	if r[invoiceIssuerName] == "" {
		return nil, errNoProvider
	}
	if d.Buyer != nil {
		r[billingAccountName] = cmp.Or(d.Buyer.LegalName, d.Buyer.Name)
	}
	r[invoiceID] = d.Number
	r[ownDocumentID], r[ownDocumentType] = d.ID(), string(d.Type)
	if d.Type == billing.CreditNote {
		a.sign = a.sign.Neg()
		r[chargeClass] = correction
	}
	return a, nil
}

// common writes what all rows of a tenant have.
func (e *export) common(r *row, tenant, contract, currency string, zone *time.Location) {
	r.provided(e.Provider)
	r[billingAccountID], r[billingAccountName], r[billingAccountType] = tenant, tenant, "Tenant"
	r[billingCurrency], r[pricingCurrency] = currency, currency
	r[billingPeriodStart] = clock(midnight(e.start, zone))
	r[billingPeriodEnd] = clock(midnight(e.end, zone))
	r[ownTenant], r[ownContract], r[ownBillingPeriod] = tenant, contract, e.Period
}

// provided writes who provides and issues, who are the same: else BilledCost would have to be 0.
func (r *row) provided(name string) {
	for _, c := range []int{
		invoiceIssuerName, providerName, publisherName, serviceProviderName, hostProviderName,
	} {
		r[c] = name
	}
}

// midnight is the first second of a day in a zone.
func midnight(day time.Time, zone *time.Location) time.Time {
	return time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, zone)
}

// clock prints an instant as FOCUS has it.
func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// cost writes a cost that is no product: all costs are the same.
func (r *row) cost(a money.Amount) {
	text := a.Fixed(money.Scale)
	for _, c := range []int{
		billedCost, effectiveCost, listCost, contractedCost, localEffectiveCost,
	} {
		r[c] = text
	}
}
