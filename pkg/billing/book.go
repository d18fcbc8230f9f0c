package billing

import (
	"fmt"
	"time"

	"github.com/suanpan/suanpan/pkg/money"
	"github.com/suanpan/suanpan/pkg/rating"
)

// Entry is a document in its newest state.
type Entry struct {
	Document
	ID      string // see [Document.ID]
	Status  Status
	Why     []string  // it is held
	By      string    // who released or voided it, or made the credit note
	Reason  string    // that person's
	At      time.Time // when the log had the newest state
	Offset  int64     // in the billing topic, of the newest state
	Decided int64     // in the billing topic, of the decision that made it
	Place   int64     // orders the documents as they were decided on
}

// Book reads the billing log: it says which documents there are, and gives numbers. All who read
// the log get the same book. It keeps little of each document, but drafts that are held whole.
type Book struct {
	decided map[rating.PeriodKey]bool
	known   map[string]*known // by document ID
	numbers map[series]int64
	acts    map[string]int64 // offsets of what persons did last, by tenant
	issued  int64
	place   int64
	end     int64
}

// known is what a book keeps of a document.
type known struct {
	status    Status
	number    string
	issueDate string
	left      money.Amount // of an invoice: what can still be given back
	credits   int          // of an invoice: credit notes that cite it, without voided ones
	entry     *Entry       // of a held draft
	terms     Terms        // of a held draft
}

// series is what numbers are counted by.
type series struct {
	seller, name string
	of           Type
}

// NewBook returns the book of an empty log.
func NewBook() *Book {
	return &Book{
		decided: make(map[rating.PeriodKey]bool), known: make(map[string]*known),
		numbers: make(map[series]int64), acts: make(map[string]int64),
	}
}

// End is the end of the log as far as the book has read it.
func (b *Book) End() int64 { return b.end }

// Decided reports whether the documents of a closed period were decided on.
func (b *Book) Decided(k rating.PeriodKey) bool { return b.decided[k] }

// Issued counts the documents that have a number.
func (b *Book) Issued() int64 { return b.issued }

// Status returns the status of a document; false if there is none of that ID.
func (b *Book) Status(id string) (Status, bool) {
	k := b.known[id]
	if k == nil {
		return "", false
	}
	return k.status, true
}

// Apply takes the next record of the log in and returns the documents that it changed. It fails,
// and changes nothing, where the record must be ignored: it repeats a decision, or was made before
// its sender knew of another.
func (b *Book) Apply(offset int64, at time.Time, value []byte) ([]Entry, error) {
	b.end = offset + 1
	r, err := ParseRecord(value)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	switch {
	case r.Decision != nil:
		return b.decide(r.Decision, offset, at)
	case r.Credit != nil:
		entries, err = b.credit(r.Credit, offset, at)
	case r.Release != nil:
		entries, err = b.release(r.Release, offset, at)
	case r.Void != nil:
		entries, err = b.void(r.Void, offset, at)
	}
	for i := range entries {
		b.acts[entries[i].Tenant] = offset
	}
	return entries, err // none of others, such as alerts
}

func (b *Book) decide(d *Decision, offset int64, at time.Time) ([]Entry, error) {
	key := rating.PeriodKey{Tenant: d.Tenant, Contract: d.Contract, Period: d.Period}
	if b.decided[key] {
		return nil, fmt.Errorf("period %s of tenant %s, contract %q, was decided on before", d.Period,
			d.Tenant, d.Contract)
	}
	if act, ok := b.acts[d.Tenant]; ok && d.Known > 0 && act >= d.Known {
		return nil, fmt.Errorf("period %s of tenant %s was decided on before its sender knew what a "+
			"person did at %d", d.Period, d.Tenant, act)
	}
	own := make(map[string]money.Amount) // what is left of invoices, with this very decision
	seen := make(map[string]bool)
	for i := range d.Documents {
		doc := &d.Documents[i].Document
		if err := b.check(doc, own); err != nil {
			return nil, err
		}
		if seen[doc.ID()] {
			return nil, fmt.Errorf("document %s is there twice", doc.ID())
		}
		seen[doc.ID()] = true
	}
	b.decided[key] = true
	var entries []Entry
	for i := range d.Documents {
		entries = append(entries, b.add(&d.Documents[i], offset, at))
	}
	return entries, nil
}

// check finds what speaks against a new document, and says what it leaves of its invoice.
func (b *Book) check(d *Document, own map[string]money.Amount) error {
	if b.known[d.ID()] != nil {
		return fmt.Errorf("there is a document %s already", d.ID())
	}
	if d.Type == Invoice {
		own[d.ID()] = parse(d.Total)
		return nil
	}
	invoice := d.Key().String()
	left, ok := own[invoice]
	if k := b.known[invoice]; !ok && k != nil && k.status != Voided {
		left, ok = k.left, true
	}
	switch {
	case !ok:
		return fmt.Errorf("credit note %s cites invoice %s, which there is not", d.ID(), invoice)
	case parse(d.Total).Cmp(left) > 0:
		return fmt.Errorf("credit note %s gives %s back, but only %s is left of invoice %s", d.ID(),
			d.Total, left, invoice)
	}
	own[invoice] = left.Sub(parse(d.Total))
	return nil
}

// add takes a new document in and issues it, unless it is held.
func (b *Book) add(d *Drafted, offset int64, at time.Time) Entry {
	b.place++
	k := &known{status: Held, terms: d.Terms}
	entry := Entry{
		Document: d.Document, ID: d.Document.ID(), Status: Held, Why: d.Held, By: d.By,
		Reason: d.Reason, At: at, Offset: offset, Decided: offset, Place: b.place,
	}
	b.known[entry.ID] = k
	if d.Type == Invoice {
		k.left = parse(d.Total)
	} else {
		cited := b.known[d.Key().String()]
		cited.left = cited.left.Sub(parse(d.Total))
		cited.credits++
		if cited.status == Held && len(entry.Why) == 0 {
			entry.Why = []string{"its invoice is held"}
		}
	}
	if len(entry.Why) == 0 {
		b.issue(&entry, k, at)
		return entry
	}
	held := entry
	k.entry = &held
	return entry
}

// issue gives a document its number, from the place of its record in the log, and its dates.
func (b *Book) issue(e *Entry, k *known, at time.Time) {
	s := series{name: k.terms.Series, of: e.Type}
	if e.Seller != nil {
		s.seller = e.Seller.Name
	}
	b.numbers[s]++
	b.issued++
	day := at.In(k.terms.location())
	e.Status = Issued
	e.Number = fmt.Sprintf("%s-%d-%d", s.name, day.Year(), b.numbers[s])
	e.IssueDate = day.Format(time.DateOnly)
	if e.Type == Invoice {
		e.DueDate = day.AddDate(0, 0, k.terms.PaymentDays).Format(time.DateOnly)
	} else {
		cited := b.known[e.Key().String()]
		citation := *e.Cites
		citation.Number, citation.IssueDate = cited.number, cited.issueDate
		e.Cites = &citation
	}
	k.status, k.number, k.issueDate, k.entry = Issued, e.Number, e.IssueDate, nil
}

func (b *Book) credit(d *Drafted, offset int64, at time.Time) ([]Entry, error) {
	if d.Type != CreditNote {
		return nil, fmt.Errorf("document %s is no credit note", d.ID())
	}
	if err := b.check(&d.Document, make(map[string]money.Amount)); err != nil {
		return nil, err
	}
	return []Entry{b.add(d, offset, at)}, nil
}

// heldDraft returns a held draft.
func (b *Book) heldDraft(id string) (*known, error) {
	k := b.known[id]
	switch {
	case k == nil:
		return nil, fmt.Errorf("there is no document %s", id)
	case k.status == Issued:
		return nil, fmt.Errorf("document %s is issued as %s: it is lowered by a credit note only", id,
			k.number)
	case k.status == Voided:
		return nil, fmt.Errorf("document %s is voided", id)
	}
	return k, nil
}

func (b *Book) release(a *Act, offset int64, at time.Time) ([]Entry, error) {
	k, err := b.heldDraft(a.ID)
	if err != nil {
		return nil, err
	}
	entry := *k.entry
	switch {
	case entry.Seller == nil && (a.Document == nil || a.Document.Seller == nil):
		return nil, fmt.Errorf("document %s has no seller", a.ID)
	case entry.Type == CreditNote && b.known[entry.Key().String()].status != Issued:
		return nil, fmt.Errorf("document %s cites an invoice that is not issued", a.ID)
	case entry.Seller == nil && entry.Type == Invoice:
		entry.Document, k.terms, k.left = *a.Document, a.Terms, parse(a.Document.Total)
	case entry.Seller == nil:
		cited := b.known[entry.Key().String()]
		left := cited.left.Add(parse(entry.Total)).Sub(parse(a.Document.Total))
		if left.Sign() < 0 {
			return nil, fmt.Errorf("credit note %s gives more back than is left", a.ID)
		}
		entry.Document, k.terms, cited.left = *a.Document, a.Terms, left
	}
	entry.By, entry.Reason, entry.At, entry.Offset = a.By, a.Reason, at, offset
	b.issue(&entry, k, at)
	return []Entry{entry}, nil
}

func (b *Book) void(a *Act, offset int64, at time.Time) ([]Entry, error) {
	k, err := b.heldDraft(a.ID)
	if err != nil {
		return nil, err
	}
	entry := *k.entry
	if k.credits > 0 {
		return nil, fmt.Errorf("document %s is cited by %d credit notes: void these first", a.ID,
			k.credits)
	}
	if entry.Type == CreditNote {
		cited := b.known[entry.Key().String()]
		cited.left = cited.left.Add(parse(entry.Total))
		cited.credits--
	}
	entry.Status, entry.By, entry.Reason, entry.At, entry.Offset = Voided, a.By, a.Reason, at, offset
	k.status, k.entry = Voided, nil
	return []Entry{entry}, nil
}
