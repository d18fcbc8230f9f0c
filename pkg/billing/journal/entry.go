package journal

import (
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/money"
)

// entry is the postings of a document at work. Amounts are of an invoice, debits above 0; a credit
// note turns them round at the end.
type entry struct {
	doc      *billing.Document
	accounts *catalog.Accounts
	digits   int
	base     Posting
	postings []Posting
	sum      money.Amount
	parts    int64 // amounts that were rounded by themselves
}

// entryOf posts a document that was issued.
func entryOf(d *billing.Document, o *Options) ([]Posting, error) {
	if err := d.CheckSums(); err != nil {
		return nil, err
	}
	digits, ok := money.Digits(d.Currency)
	switch {
	case !ok:
		return nil, fmt.Errorf("%q is no currency", d.Currency)
	case d.Seller == nil:
		return nil, errors.New("it has no seller, whose accounts are needed")
	}
	e := &entry{doc: d, accounts: o.Accounts(d.Seller.Name), digits: digits}
	if e.accounts == nil {
		e.accounts = &catalog.Accounts{}
	}
	e.base = Posting{
		Entry: d.Number, Date: d.IssueDate, Type: d.Type, Seller: d.Seller.Name, Tenant: d.Tenant,
		Contract: d.Contract, Period: o.Period, Currency: d.Currency,
	}
	if d.Cites != nil {
		e.base.Cites = d.Cites.Number
	}
	if err := e.post(); err != nil {
		return nil, err
	}
	return e.postings, nil
}

func (e *entry) post() error {
	d := e.doc
	err := e.add(Receivable, e.accounts.Receivable, read(d.Due), Posting{})
	for _, p := range d.Prepaid {
		err = errors.Join(err, e.add(Prepaid, e.accounts.Prepaid, read(p.Amount),
			Posting{Grant: p.Grant}))
	}
	revenue, promo, lines := e.lines()
	err = errors.Join(err, lines)
	for _, grant := range slices.Sorted(maps.Keys(promo)) {
		err = errors.Join(err, e.add(Promo, e.accounts.Promo, promo[grant].Neg(), Posting{Grant: grant}))
	}
	for _, account := range slices.Sorted(maps.Keys(revenue)) {
		err = errors.Join(err, e.add(Revenue, account, revenue[account].Neg(), Posting{}))
	}
	for _, t := range d.Taxes {
		e.parts++
		err = errors.Join(err, e.add(Tax, e.accounts.Tax, read(t.Tax).Neg(),
			Posting{TaxCategory: t.Category, TaxRate: t.Rate}))
	}
	// It is the rest, and so the entry is balanced; but a rest that rounding cannot leave is a fault.
	limit := money.New(big.NewInt(e.parts), e.digits)
	rest := e.sum.Neg()
	if rest.Cmp(limit) > 0 || rest.Cmp(limit.Neg()) < 0 {
		return errors.Join(err, fmt.Errorf("its net amounts, taxes and total differ by %s", rest))
	}
	return errors.Join(err, e.add(Rounding, e.accounts.Rounding, rest, Posting{}))
}

// lines adds the net amounts of the lines up: by account, and those of promotional money by grant.
func (e *entry) lines() (revenue, promo map[string]money.Amount, err error) {
	revenue, promo = make(map[string]money.Amount), make(map[string]money.Amount)
	for i := range e.doc.Lines {
		l := &e.doc.Lines[i]
		e.parts++
		if l.Grant != "" {
			promo[l.Grant] = promo[l.Grant].Add(read(l.Net))
			continue
		}
		parts := l.Details // late lines are of several SKUs
		if len(parts) == 0 {
			parts = e.doc.Lines[i : i+1]
		}
		for j := range parts {
			e.parts++
			net, sku := read(parts[j].Net), parts[j].SKU
			account := e.accounts.RevenueAccount(sku)
			if account == "" && net.Sign() != 0 {
				what := "SKU " + sku
				if sku == "" {
					what = "lines without a SKU, which * is for"
				}
				err = errors.Join(err, fmt.Errorf("seller %s has no revenue account for %s",
					e.base.Seller, what))
			}
			revenue[account] = revenue[account].Add(net)
		}
	}
	return revenue, promo, err
}

// add posts an amount, unless it is 0. more has what only some kinds have.
func (e *entry) add(kind Kind, account string, debit money.Amount, more Posting) error {
	e.sum = e.sum.Add(debit)
	if debit.Sign() == 0 {
		return nil
	}
	if account == "" && kind != Revenue { // that was said already
		return fmt.Errorf("seller %s has no account for %s", e.base.Seller, kind)
	}
	p := e.base
	p.Line, p.Kind, p.Account = len(e.postings)+1, kind, account
	p.Grant, p.TaxCategory, p.TaxRate = more.Grant, more.TaxCategory, more.TaxRate
	if e.doc.Type == billing.CreditNote {
		debit = debit.Neg()
	}
	if debit.Sign() > 0 {
		p.Debit = debit.Fixed(e.digits)
	} else {
		p.Credit = debit.Neg().Fixed(e.digits)
	}
	e.postings = append(e.postings, p)
	return nil
}

// read reads an amount that was checked before.
func read(text string) money.Amount {
	a, err := money.ParseSigned(text)
	if err != nil {
		panic("BUG: an amount that was checked is " + err.Error())
	}
	return a
}
