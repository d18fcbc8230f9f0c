package billing

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
	"github.com/suanpan/suanpan/pkg/rating"
)

// DefaultLateDays bounds late charges: usage of a period that ended longer before is not charged.
const DefaultLateDays = 60

// Closing is all that the documents of one billing period of a contract follow from.
type Closing struct {
	Tenant   string
	Contract string // "" for usage without one
	Period   string
	Uses     []rating.Use     // of the billing period
	Proofs   map[string]Proof // by currency
	Catalog  *catalog.Catalog
	History  *History // what was decided on before
	AsOf     int64    // second at which the parties are looked up
	LateDays int      // see [DefaultLateDays]
}

// drafting is a Closing at work on one currency.
type drafting struct {
	*Closing
	currency string
	digits   int
	rounding money.Rounding
	seller   *catalog.Seller // nil where there is none
	buyer    *catalog.Buyer  // nil where there is none
	zone     *time.Location
	from     int64
	until    int64
}

// priced is a use and what it costs in the billing period.
type priced struct {
	*rating.Use
	curve  rating.Curve
	amount money.Amount // exact
	before money.Amount // what earlier billing periods were charged for
	now    money.Amount // before + amount
}

// quantity is what the billing period adds.
func (p *priced) quantity() metering.Quantity { return p.Now.Add(p.Before.Neg()) }

// Draft makes the documents of a closed period, by currency: the invoice, unless there is nothing
// to bill, and a credit note for each earlier period that late events made cheaper. It fails where
// the catalog lacks what the usage was rated by.
func Draft(c *Closing) ([]*Document, error) {
	byCurrency := make(map[string][]priced)
	for i := range c.Uses {
		p, err := price(&c.Uses[i], c.Catalog)
		if err != nil {
			return nil, err
		}
		byCurrency[p.curve.Currency()] = append(byCurrency[p.curve.Currency()], p)
	}
	maps.DeleteFunc(byCurrency, func(_ string, uses []priced) bool {
		return !slices.ContainsFunc(uses, func(u priced) bool { return !u.Elsewhere })
	})
	seller, _ := c.Catalog.SellerOf(c.Tenant, c.Contract, c.AsOf)
	if len(byCurrency) == 0 && seller != nil && seller.EmptyInvoices {
		if currency := c.currency(); currency != "" {
			byCurrency[currency] = nil
		}
	}
	var documents []*Document
	for _, currency := range sortedKeys(byCurrency) {
		d, err := c.drafting(currency, byCurrency[currency])
		if err != nil {
			return nil, err
		}
		made, err := d.documents(byCurrency[currency])
		if err != nil {
			return nil, err
		}
		documents = append(documents, made...)
	}
	return documents, nil
}

func price(u *rating.Use, from *catalog.Catalog) (priced, error) {
	if u.Before.Sign() < 0 || u.Now.Sign() < 0 {
		return priced{}, fmt.Errorf("price charge %s of tenant %s: its quantity is negative: its rows "+
			"were changed", u.Charge.Key(), u.Charge.Tenant)
	}
	curve, err := rating.CurveOf(&u.Charge, from)
	if err != nil {
		return priced{}, fmt.Errorf("price charge of tenant %s: %w", u.Charge.Tenant, err)
	}
	p := priced{Use: u, curve: curve, before: curve.Total(u.Before), now: curve.Total(u.Now)}
	p.amount = p.now.Sub(p.before)
	return p, nil
}

// binding is the last one that the contract has before the end of the period.
func (c *Closing) binding() (catalog.Binding, bool) {
	_, until, ok := c.Catalog.PeriodBounds(c.Tenant, c.Contract, c.Period)
	if !ok {
		return catalog.Binding{}, false
	}
	for _, b := range slices.Backward(c.Catalog.Bindings(c.Tenant)) {
		if b.Contract == c.Contract && b.From < until && b.Book != "" {
			return b, true
		}
	}
	return catalog.Binding{}, false
}

func (c *Closing) currency() string {
	b, _ := c.binding()
	return b.Currency
}

func (c *Closing) drafting(currency string, uses []priced) (*drafting, error) {
	d := &drafting{Closing: c, currency: currency}
	digits, ok := money.Digits(currency)
	if !ok {
		return nil, fmt.Errorf("draft invoice of tenant %s: %s is no currency", c.Tenant, currency)
	}
	d.digits = digits
	d.from, d.until, ok = c.Catalog.PeriodBounds(c.Tenant, c.Contract, c.Period)
	b, bound := c.binding()
	if !ok || !bound {
		return nil, fmt.Errorf("draft invoice of tenant %s: contract %q has no price book in %s",
			c.Tenant, c.Contract, c.Period)
	}
	d.zone, d.rounding = b.Location, c.roundingOf(currency, b, uses)
	d.seller, _ = c.Catalog.SellerOf(c.Tenant, c.Contract, c.AsOf)
	d.buyer, _ = c.Catalog.Buyer(c.Tenant, c.AsOf)
	return d, nil
}

// roundingOf is how totals of a currency are rounded: as the book of that currency says at the end
// of the period, or said when the contract left it.
func (c *Closing) roundingOf(currency string, last catalog.Binding, uses []priced) money.Rounding {
	for _, b := range slices.Backward(c.Catalog.Bindings(c.Tenant)) {
		if b.Contract == c.Contract && b.From <= last.From && b.Currency == currency {
			return b.Rounding
		}
	}
	for i := range uses { // of a re-rating by another book
		of := &uses[i].Charge
		if v, ok := c.Catalog.BookVersion(of.Book, of.BookVersion); ok {
			return v.Rounding
		}
	}
	return last.Rounding
}

// documents makes the documents of one currency.
func (d *drafting) documents(uses []priced) ([]*Document, error) {
	invoice := d.document(Invoice)
	var lines []draftLine
	var credits []lateSum
	for _, late := range byPeriod(uses) {
		if late.period == d.Period {
			lines = append(d.usageLines(late.uses), lines...)
			continue
		}
		switch sum := d.late(&late); {
		case sum.amount.Sign() < 0:
			if sum.uncharged = d.uncharged(&late); sum.uncharged.Add(sum.amount).Sign() < 0 {
				credits = append(credits, sum)
			} else {
				invoice.Notes = append(invoice.Notes, d.notGivenBack(late.period, sum.amount.Neg()))
			}
		case d.tooLate(late.period) && sum.amount.Sign() > 0:
			invoice.Notes = append(invoice.Notes, fmt.Sprintf("Usage of %s worth %s %s came more than "+
				"%d days after that period and is not charged.", late.period,
				sum.amount.Round(d.digits, d.rounding).Fixed(d.digits), d.currency, d.lateDays()))
		default:
			lines = append(lines, sum.lines...)
		}
	}
	var documents []*Document
	if d.wanted(lines) {
		d.finish(invoice, lines)
		documents = append(documents, invoice)
		if err := d.History.Add(invoice); err != nil {
			return nil, err
		}
	}
	for i := range credits {
		notes, err := d.creditLate(&credits[i])
		if err != nil {
			return nil, err
		}
		documents = append(documents, notes...)
	}
	return documents, nil
}

// wanted reports whether an invoice is made of the lines: of usage always, of nothing where the
// seller wants it, of late lines alone if they come to something.
func (d *drafting) wanted(lines []draftLine) bool {
	empty := d.seller != nil && d.seller.EmptyInvoices
	var sum money.Amount
	for i := range lines {
		if lines[i].Kind == UsageLine {
			return true
		}
		sum = sum.Add(lines[i].exact)
	}
	return empty || sum.Round(d.digits, d.rounding).Sign() != 0
}

func (c *Closing) lateDays() int {
	if c.LateDays == 0 {
		return DefaultLateDays
	}
	return c.LateDays
}

// tooLate reports whether a period ended so long ago that its usage is not charged any more.
func (d *drafting) tooLate(period string) bool { return d.tooLateIn(period, d.from) }

// tooLateIn is tooLate of a billing period that begins at a second.
func (d *drafting) tooLateIn(period string, from int64) bool {
	_, until, ok := d.Catalog.PeriodBounds(d.Tenant, d.Contract, period)
	return ok && from-until > int64(d.lateDays())*daySeconds
}

// uncharged is what the usage of an earlier period cost that earlier billing periods told of too
// late to charge it, less what became cheaper since: that much of a period was never paid for, and
// is not given back.
func (d *drafting) uncharged(of *ofPeriod) money.Amount {
	var billings []string
	for i := range of.all {
		for _, s := range of.all[i].Steps {
			billings = append(billings, s.Billing)
		}
	}
	slices.Sort(billings)
	var sum, before money.Amount
	for _, billing := range slices.Compact(billings) {
		if billing >= d.Period {
			break
		}
		cost := of.cost(billing)
		added := cost.Sub(before)
		before = cost
		from, _, ok := d.Catalog.PeriodBounds(d.Tenant, d.Contract, billing)
		switch {
		case added.Sign() < 0:
			sum = sum.Add(added)
			if sum.Sign() < 0 {
				sum = money.Amount{} // the rest was given back
			}
		case ok && d.tooLateIn(of.period, from):
			sum = sum.Add(added)
		}
	}
	return sum
}

// notGivenBack is the note about what of a period became cheaper and was not charged.
func (d *drafting) notGivenBack(period string, amount money.Amount) string {
	return fmt.Sprintf("Usage of %s worth %s %s was not charged, and is not given back.", period,
		amount.Round(d.digits, d.rounding).Fixed(d.digits), d.currency)
}

// cost is what the period's usage cost that counts in billing periods up to one.
func (of *ofPeriod) cost(until string) money.Amount {
	var sum money.Amount
	for i := range of.all {
		u := &of.all[i]
		var q metering.Quantity
		for _, s := range u.Steps {
			if s.Billing <= until {
				q = q.Add(s.Quantity)
			}
		}
		sum = sum.Add(u.curve.Total(q))
	}
	return sum
}

const daySeconds = 86_400

// document makes a document that has no lines yet.
func (d *drafting) document(t Type) *Document {
	doc := &Document{
		Schema: Schema, Type: t,
		Tenant: d.Tenant, Contract: d.Contract, Period: d.Period,
		PeriodStart: d.date(d.from), PeriodEnd: d.date(d.until - 1),
		Timezone: d.zone.String(), Currency: d.currency, Language: "en",
		Lines: []Line{}, Taxes: []Tax{}, Prepaid: []Paid{}, Notes: []string{},
		Proof: d.Proofs[d.currency],
	}
	if d.seller != nil {
		doc.Seller = sellerParty(d.seller)
		doc.Notes = append(doc.Notes, d.seller.Notes...)
		doc.Language = cmp.Or(d.seller.Language, doc.Language)
	}
	if d.buyer != nil {
		doc.Buyer = buyerParty(d.buyer)
		doc.Language = cmp.Or(d.buyer.Language, doc.Language)
	}
	return doc
}

func (d *drafting) date(second int64) string {
	return time.Unix(second, 0).In(d.zone).Format(time.DateOnly)
}

// ofPeriod are the uses of one usage period.
type ofPeriod struct {
	period string
	uses   []priced // that count in the billing period
	all    []priced // and those that do not, of a late period
}

// byPeriod groups uses by the period in which they were used, ascending.
func byPeriod(uses []priced) []ofPeriod {
	groups := make(map[string][]priced)
	for _, u := range uses {
		groups[u.Charge.Period] = append(groups[u.Charge.Period], u)
	}
	out := make([]ofPeriod, 0, len(groups))
	for _, period := range sortedKeys(groups) {
		of := ofPeriod{period: period, all: groups[period]}
		for _, u := range of.all {
			if !u.Elsewhere {
				of.uses = append(of.uses, u)
			}
		}
		out = append(out, of)
	}
	return out
}
