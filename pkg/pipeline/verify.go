package pipeline

import (
	"context"
	"fmt"
	"slices"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/rating"
)

// Evidence is what a verification reads of a store.
type Evidence interface {
	Bills
	// Archived visits the archived records of a tenant in one partition of the usage topic, in the
	// order of their offsets, up to an offset. It fails where the archive of the partition has a gap
	// before that offset.
	Archived(ctx context.Context, tenant string, partition int, until int64,
		visit func(Record) error) error
	// DocumentsBefore visits the documents of a tenant that counted when the billing log had an
	// offset, in the order in which they were decided on: those that were voided since as well.
	DocumentsBefore(ctx context.Context, tenant string, offset int64,
		visit func(*billing.Document) error) error
	// Refused returns the offsets of a usage partition below one that are dead letters.
	Refused(ctx context.Context, partition int, until int64) (map[int64]bool, error)
	// Find returns all that there is of a need.
	Find(ctx context.Context, need *rating.Need) (*rating.Known, error)
}

// VerifyReport says what a verification found.
type VerifyReport struct {
	Events int64 // that were rated again
	Rows   int64 // that were compared
	// Differences name what is not as the events say, each with what it should be.
	Differences []string
}

// maxDifferences bounds the report.
const maxDifferences = 1000

// verifyBatch is the number of hour rows that are compared together.
const verifyBatch = 5000

// Verifier checks an invoice against the archived events alone.
type Verifier struct {
	store    Evidence
	prices   *Prices
	lateDays int
}

// NewVerifier returns a verifier. lateDays are those by which the invoices were made, see
// billing.DefaultLateDays.
func NewVerifier(store Evidence, prices *Prices, lateDays int) *Verifier {
	return &Verifier{store: store, prices: prices, lateDays: lateDays}
}

// verification is one at work.
type verification struct {
	*Verifier
	entry  *billing.Entry
	doc    *billing.Document
	key    PeriodKey
	close  rating.Close
	ledger *rating.Ledger
	report *VerifyReport
}

func (v *verification) differ(format string, args ...any) {
	if len(v.report.Differences) < maxDifferences {
		v.report.Differences = append(v.report.Differences, fmt.Sprintf(format, args...))
	}
}

// Verify rates the archived events of the tenant up to the close of the invoice's period from
// scratch, and compares every row, the hash of the rows and every amount with what is stored. The
// prices must have been refreshed.
func (v *Verifier) Verify(ctx context.Context, entry *billing.Entry) (*VerifyReport, error) {
	doc := &entry.Document
	closes, err := v.store.Closes(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("read closes: %w", err)
	}
	period, err := doc.DecidedAt()
	if err != nil {
		return nil, fmt.Errorf("verify %s: %w", doc.ID(), err)
	}
	run := &verification{
		Verifier: v, entry: entry, doc: doc, ledger: rating.NewLedger(), report: new(VerifyReport),
		key: PeriodKey{Tenant: doc.Tenant, Contract: doc.Contract, Period: period},
	}
	at := slices.IndexFunc(closes, func(c rating.Close) bool { return c.PeriodKey == run.key })
	if at < 0 {
		return nil, fmt.Errorf("verify %s: its period has no close", doc.ID())
	}
	run.close = closes[at]
	var before []rating.Close // what was closed before it, of this tenant
	for _, c := range closes {
		if c.Tenant == doc.Tenant && c.Offset < run.close.Offset {
			before = append(before, c)
		}
	}
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return run.rate(ctx, before) },
		run.compareLines, run.compareRows, run.compareDocument,
	} {
		if err := step(ctx); err != nil {
			return nil, fmt.Errorf("verify %s: %w", doc.ID(), err)
		}
	}
	return run.report, nil
}

// rate makes the ledger that the events make.
func (v *verification) rate(ctx context.Context, closes []rating.Close) error {
	partition, until := v.close.Partition, v.close.Offset
	refused, err := v.store.Refused(ctx, partition, until)
	if err != nil {
		return fmt.Errorf("read dead letters: %w", err)
	}
	rater := rating.NewRater(v.prices.Catalog, nil, closes...)
	rater.Obey(v.prices.Amended)
	parser := metering.NewParser()
	var e metering.Event
	err = v.store.Archived(ctx, v.doc.Tenant, partition, until, func(r Record) error {
		if refused[r.Offset] {
			return nil
		}
		v.report.Events++
		rejection := parser.Parse(r.Value, &e)
		if rejection == nil && e.Tenant != v.doc.Tenant {
			return nil // its key is wrong: it was forwarded
		}
		if rejection == nil && e.Kind == metering.Rerate {
			if err := v.loadSpan(rater, &e); err != nil {
				return err
			}
		}
		if rejection == nil {
			rejection = rater.Rate(&e, rating.Position{Partition: r.Partition, Offset: r.Offset},
				received(&r))
		}
		if rejection != nil {
			v.differ("event at offset %d of partition %d was accepted, but is %s", r.Offset, r.Partition,
				rejection)
		}
		if rater.Pending() >= verifyBatch {
			changes := rater.Drain()
			v.ledger.Apply(&changes)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("rate archived events: %w", err)
	}
	changes := rater.Drain()
	v.ledger.Apply(&changes)
	return nil
}

// loadSpan gives the rater what the ledger has of the hours that a re-rating is about.
func (v *verification) loadSpan(rater *rating.Rater, e *metering.Event) error {
	changes := rater.Drain()
	v.ledger.Apply(&changes)
	need := new(rating.Need)
	rater.Need(e, need)
	return rater.Load(need, v.ledger.Find(need))
}

// compareLines compares what is billed of each row.
func (v *verification) compareLines(ctx context.Context) error {
	want := make(map[string]bool)
	for _, line := range v.ledger.RowLines() {
		if line.Charge.Contract == v.key.Contract && line.Billing == v.key.Period {
			want[line.Text] = true
		}
	}
	err := v.store.RowLines(ctx, []PeriodKey{v.key}, func(_ PeriodKey, line rating.RowLine) error {
		v.report.Rows++
		if !want[line.Text] {
			v.differ("stored, but not of the events: %q", line.Text)
		}
		delete(want, line.Text)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read rows: %w", err)
	}
	for _, text := range sortedKeys(want) {
		v.differ("of the events, but not stored: %q", text)
	}
	return nil
}

// compareRows compares the sets of the hours that are billed, and the facts of their sessions.
func (v *verification) compareRows(ctx context.Context) error {
	need := v.ledger.HoursOf(v.key)
	for len(need) > 0 {
		n := min(len(need), verifyBatch)
		batch := rating.Need{
			Sessions: make(map[rating.SessionKey]bool), Hours: make(map[rating.HourKey]bool),
		}
		for _, hour := range need[:n] {
			batch.Sessions[hour.SessionKey], batch.Hours[hour] = true, true
		}
		stored, err := v.store.Find(ctx, &batch)
		if err != nil {
			return fmt.Errorf("find stored rows: %w", err)
		}
		for _, difference := range v.ledger.Differences(&batch, stored) {
			v.differ("%s", difference)
		}
		need = need[n:]
	}
	return nil
}

// compareDocument drafts the document again, from the rows of the events and what was billed
// before.
func (v *verification) compareDocument(ctx context.Context) error {
	history := billing.NewHistory()
	err := v.store.DocumentsBefore(ctx, v.doc.Tenant, v.entry.Decided, history.Add)
	if err != nil {
		return fmt.Errorf("read earlier documents: %w", err)
	}
	proofs, err := billing.Proofs(v.ledger, v.prices.Catalog)
	if err != nil {
		return err
	}
	closing := &billing.Closing{
		Tenant: v.doc.Tenant, Contract: v.doc.Contract, Period: v.key.Period,
		Proofs: make(map[string]billing.Proof), Catalog: v.prices.Catalog, History: history,
		AsOf: v.asOf(), LateDays: v.lateDays,
	}
	for _, a := range v.ledger.Accounts() {
		if a.Contract == v.key.Contract {
			closing.Uses = a.Uses(v.key.Period)
		}
	}
	for key, proof := range proofs {
		if key.Contract == v.key.Contract && key.Period == v.key.Period {
			closing.Proofs[key.Currency] = proof
		}
	}
	drafts, err := billing.Draft(closing)
	if err != nil {
		return fmt.Errorf("draft again: %w", err)
	}
	for _, d := range drafts {
		if d.ID() == v.doc.ID() {
			for _, difference := range billing.Differences(d, v.doc) {
				v.differ("document: %s", difference)
			}
			return nil
		}
	}
	v.differ("document: the events give none for %s", v.doc.ID())
	return nil
}

// asOf is the second at which the document's parties were looked up: when its period was closed, or
// when it was released if there was no seller before.
func (v *verification) asOf() int64 {
	_, err := v.prices.Catalog.SellerOf(v.doc.Tenant, v.doc.Contract, v.close.At)
	if err != nil && v.doc.Seller != nil {
		return v.entry.At.Unix()
	}
	return v.close.At
}
