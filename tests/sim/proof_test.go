package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/pkg/rating"
	"github.com/suanpan/suanpan/schemas"
)

// booked are the documents that the billing log has.
func (w *world) booked() entries {
	book, all := billing.NewBook(), make(entries)
	for _, r := range w.log.billing {
		made, err := book.Apply(r.Offset, r.Time, r.Value)
		if err != nil {
			continue // it is ignored
		}
		for _, e := range made {
			all[e.ID] = e
		}
	}
	return all
}

// decideHeld has a person release or void a document that is held.
func (w *world) decideHeld() {
	all := w.booked()
	var held []string
	for _, id := range sorted(all) {
		if all[id].Status == billing.Held {
			held = append(held, id)
		}
	}
	if len(held) == 0 {
		return
	}
	act := &billing.Act{ID: held[w.rng.IntN(len(held))], By: "ann", Reason: "looked at"}
	record := &billing.Record{Release: act}
	if w.rng.IntN(2) == 0 {
		record = &billing.Record{Void: act}
		w.months.given[all[act.ID].Tenant] = true
	}
	value, err := record.Encode("/person")
	if err != nil {
		w.fail("encode act: %v", err)
		return
	}
	w.event("a person judges: %s", value)
	w.met("judged by a person")
	w.log.append(pipeline.Record{
		Topic: schemas.TopicBilling, Key: []byte(all[act.ID].Tenant), Value: value,
	}, 0)
}

// giveBack is a person who gives some or all of an invoice back.
func (w *world) giveBack() {
	all := w.booked()
	var issued []billing.Entry
	for _, id := range sorted(all) {
		if e := all[id]; e.Type == billing.Invoice && e.Status == billing.Issued {
			issued = append(issued, e)
		}
	}
	if len(issued) == 0 {
		return
	}
	e := issued[w.rng.IntN(len(issued))]
	history := all.history(w, e.Tenant)
	request := billing.CreditRequest{
		Key: e.Key(), ID: fmt.Sprintf("person-%d", len(w.log.billing)), Reason: "goodwill",
	}
	if left := history.Remaining(e.Key()); w.chance(500) && left.Sign() > 0 {
		request.Amount = &left
	}
	note, err := billing.Credit(history, request)
	if err != nil {
		return // nothing is left of it
	}
	terms := billing.Terms{Series: "CN", Timezone: "Asia/Tokyo"}
	record := &billing.Record{Credit: &billing.Drafted{
		Document: *note, Terms: terms, By: "ann", Reason: "goodwill",
	}}
	value, err := record.Encode("/person")
	if err != nil {
		w.fail("encode credit: %v", err)
		return
	}
	w.months.given[e.Tenant] = true
	for _, l := range w.fleet.leases { // and some of it turns out not to have been used
		if l.tenant == e.Tenant && w.chance(850) {
			w.fleet.takeOff(l, w.now.Add(w.between(0, 5*time.Minute)))
		}
	}
	w.met("credit by a person")
	w.log.append(pipeline.Record{
		Topic: schemas.TopicBilling, Key: []byte(e.Tenant), Value: value,
	}, 0)
}

// evidence is the store as a verification reads it.
type evidence struct {
	bills
	rows rows
}

func (e evidence) Find(ctx context.Context, need *rating.Need) (*rating.Known, error) {
	return e.rows.Find(ctx, need)
}

func (e evidence) Archived(_ context.Context, tenant string, partition int, until int64,
	visit func(pipeline.Record) error,
) error {
	for offset := range until {
		r, ok := e.s.archive[place{schemas.TopicUsage, partition, offset}]
		if !ok {
			return fmt.Errorf("record %d is not archived", offset)
		}
		if string(r.Key) != tenant {
			continue
		}
		if err := visit(r); err != nil {
			return err
		}
	}
	return nil
}

func (e evidence) Refused(_ context.Context, partition int, until int64) (map[int64]bool, error) {
	refused := make(map[int64]bool)
	for at := range e.s.letters {
		if at.topic == schemas.TopicUsage && at.partition == partition && at.offset < until {
			refused[at.offset] = true
		}
	}
	return refused, nil
}

// checkProofs verifies every document, and then finds a cell that is changed.
func (w *world) checkProofs(fresh *pipeline.Prices) {
	n := &node{w: w, name: "verifier"}
	store := evidence{bills{n, w.store}, rows{n, w.store}}
	verifier := pipeline.NewVerifier(store, fresh, 0)
	verify := func(e *billing.Entry) *pipeline.VerifyReport {
		report, err := verifier.Verify(context.Background(), e)
		if err != nil {
			w.fail("verify %s: %v", e.ID, err)
			return new(pipeline.VerifyReport)
		}
		return report
	}
	for _, e := range w.store.counted("") {
		if _, err := e.DecidedAt(); err != nil {
			continue // by a person
		}
		w.met("verified " + string(e.Type))
		if report := verify(&e); len(report.Differences) > 0 {
			w.fail("%s is sound, but the verifier finds %q", e.ID, report.Differences)
		}
	}
	w.changeCell(verify)
}

// changeCell changes one cell of one row that was billed.
func (w *world) changeCell(verify func(e *billing.Entry) *pipeline.VerifyReport) {
	for _, e := range w.store.counted("") {
		decided, err := e.DecidedAt()
		if err != nil || len(w.problems) > 0 {
			continue
		}
		for _, k := range sorted(w.store.hours) {
			old := w.store.hours[k]
			at := slices.IndexFunc(old.Segments, func(s rating.Segment) bool {
				return s.Charge.Tenant == e.Tenant && s.Charge.Contract == e.Contract &&
					s.Billing == decided
			})
			if at < 0 {
				continue
			}
			row := copyRow(old)
			switch w.rng.IntN(3) {
			case 0:
				row.Milli++
			case 1:
				row.Segments[at].Seconds++
			default:
				row.Segments[at].Charge.Band += "x"
			}
			w.store.hours[k] = row
			if report := verify(&e); len(report.Differences) == 0 {
				w.fail("the verifier of %s does not find that %s was changed from %s", e.ID, print(row),
					print(old))
			}
			w.store.hours[k] = old
			w.met("changed cell")
			return
		}
	}
}
