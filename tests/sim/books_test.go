package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/pkg/rating"
)

// undisturbed rates the log as one rater would to which nothing ever happened. It also returns what
// it rejects.
func (w *world) undisturbed(fresh *pipeline.Prices) (*rating.Ledger, map[place]string) {
	letters := make(map[place]string)
	ledger := rating.NewLedger()
	parser := metering.NewParser()
	for _, records := range w.log.usage {
		rater := rating.NewRater(fresh.Catalog, nil)
		rater.Obey(fresh.Amended)
		for _, r := range records {
			var e metering.Event
			if w.fleet.intents[string(r.Value)].misplaced(r) || parser.Parse(r.Value, &e) != nil {
				continue // it is elsewhere, too, or a dead letter
			}
			at := rating.Position{Partition: r.Partition, Offset: r.Offset}
			if e.Kind == metering.Rerate {
				changes := rater.Drain()
				ledger.Apply(&changes)
				need := new(rating.Need)
				rater.Need(&e, need)
				if err := rater.Load(need, ledger.Find(need)); err != nil {
					w.fail("undisturbed re-rating: %v", err)
				}
			}
			if why := rater.Rate(&e, at, receivedAt(r)); why != nil {
				letters[place{r.Topic, r.Partition, r.Offset}] = string(why.Reason)
			}
		}
		changes := rater.Drain()
		ledger.Apply(&changes)
	}
	return ledger, letters
}

// receivedAt is when the log had a record first.
func receivedAt(r pipeline.Record) metering.Instant {
	if text, ok := header(r, pipeline.HeaderForwardedTime); ok {
		if at, err := metering.ParseInstant(text); err == nil {
			return at
		}
	}
	return metering.Instant(r.Time.UnixNano())
}

// decided is a decision that counts, as the auditor reads the billing log: the first of its period
// that may be.
type decided struct {
	period
	documents []*billing.Document
}

// checkBooks holds the documents against the billing log, the usage log and one another.
func (w *world) checkBooks(fresh *pipeline.Prices) {
	if w.months == nil {
		return
	}
	book := billing.NewBook()
	want := make(entries)
	var decisions []decided
	ledger, _ := w.undisturbed(fresh)
	again := &redraft{w: w, ledger: ledger, fresh: fresh, entries: want}
	for _, r := range w.log.billing {
		made, err := book.Apply(r.Offset, r.Time, r.Value)
		record, parseErr := billing.ParseRecord(r.Value)
		if parseErr != nil {
			w.fail("billing record %d: %v", r.Offset, parseErr)
			return
		}
		if d := record.Decision; d != nil && err == nil {
			k := period{Tenant: d.Tenant, Contract: d.Contract, Period: d.Period}
			if slices.ContainsFunc(decisions, func(old decided) bool { return old.period == k }) {
				w.fail("period %v is decided on twice", k)
			}
			one := decided{period: k}
			for _, e := range made {
				one.documents = append(one.documents, &e.Document)
			}
			decisions = append(decisions, one)
			again.check(&one)
		}
		for _, e := range made {
			want[e.ID] = e
		}
	}
	got := make(map[string]billing.Entry)
	maps.Copy(got, w.store.documents)
	if diff := gocmp.Diff(printed(want), printed(got)); diff != "" {
		w.fail("documents (-billing log +store):\n%s", diff)
	}
	w.checkNumbers()
	w.checkComplete(fresh, decisions)
	w.checkSums(ledger, fresh, decisions)
	w.checkProofs(fresh)
}

func printed(entries map[string]billing.Entry) map[string]string {
	out := make(map[string]string)
	for id, e := range entries {
		text, err := json.Marshal(&e)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		out[id] = string(text)
	}
	return out
}

// redraft drafts all documents again, from a ledger to which nothing happened.
type redraft struct {
	w       *world
	ledger  *rating.Ledger
	fresh   *pipeline.Prices
	entries entries
}

// entries are the documents of a billing log in their newest states, by their IDs.
type entries map[string]billing.Entry

// history is that of a tenant: what counts, in the order in which it was decided on.
func (all entries) history(w *world, tenant string) *billing.History {
	var counted []billing.Entry
	for _, e := range all {
		if e.Tenant == tenant && e.Status != billing.Voided {
			counted = append(counted, e)
		}
	}
	slices.SortFunc(counted, func(a, b billing.Entry) int { return cmp.Compare(a.Place, b.Place) })
	h := billing.NewHistory()
	for i := range counted {
		if err := h.Add(&counted[i].Document); err != nil {
			w.fail("add %s to the history: %v", counted[i].ID, err)
		}
	}
	return h
}

// check holds a decision against the draft of the undisturbed rows.
func (r *redraft) check(one *decided) {
	closed, ok := r.ledger.Closes()[one.period]
	if !ok {
		r.w.fail("%v is decided on, and was never closed", one.period)
		return
	}
	closing := &billing.Closing{
		Tenant: one.Tenant, Contract: one.Contract, Period: one.Period,
		Proofs: make(map[string]billing.Proof), Catalog: r.fresh.Catalog,
		History: r.entries.history(r.w, one.Tenant), AsOf: closed.At,
	}
	for _, a := range r.ledger.Accounts() {
		if a.Tenant == one.Tenant && a.Contract == one.Contract {
			closing.Uses = a.Uses(one.Period)
		}
	}
	proofs, err := billing.Proofs(r.ledger, r.fresh.Catalog)
	if err != nil {
		r.w.fail("hash the undisturbed rows: %v", err)
		return
	}
	for k, proof := range proofs {
		if k.Tenant == one.Tenant && k.Contract == one.Contract && k.Period == one.Period {
			proof.Partition, proof.CloseOffset = closed.Partition, closed.Offset
			proof.CatalogOffset, proof.MarketOffset = closed.CatalogOffset, closed.MarketOffset
			closing.Proofs[k.Currency] = proof
		}
	}
	drafts, err := billing.Draft(closing)
	if err != nil {
		r.w.fail("draft %v again: %v", one.period, err)
		return
	}
	if diff := gocmp.Diff(draftTexts(drafts), draftTexts(one.documents)); diff != "" {
		r.w.fail("documents of %v (-undisturbed +decided):\n%s", one.period, diff)
	}
	r.w.coverage["documents"] += len(drafts)
	for _, d := range drafts {
		r.w.met("document " + string(d.Type))
	}
}

// draftTexts prints documents without what issuing adds.
func draftTexts(documents []*billing.Document) []string {
	var out []string
	for _, d := range documents {
		c := *d
		c.Number, c.IssueDate, c.DueDate = "", "", ""
		if c.Cites != nil {
			cites := *c.Cites
			cites.Number, cites.IssueDate = "", ""
			c.Cites = &cites
		}
		c.Notes = slices.DeleteFunc(slices.Clone(c.Notes), func(note string) bool {
			return strings.HasSuffix(note, "usage events of the period could not be rated.")
		})
		text, err := json.MarshalIndent(&c, "", " ")
		if err != nil {
			panic("BUG: " + err.Error())
		}
		out = append(out, string(text))
	}
	return out
}

// checkNumbers makes sure that the numbers of each series count from 1 on, in the log's order.
func (w *world) checkNumbers() {
	issued := slices.DeleteFunc(w.store.counted(""), func(e billing.Entry) bool {
		return e.Status != billing.Issued
	})
	slices.SortStableFunc(issued, func(a, b billing.Entry) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Place, b.Place))
	})
	next := make(map[string]int)
	for _, e := range issued {
		series, rest, _ := strings.Cut(e.Number, "-")
		year, n, _ := strings.Cut(rest, "-")
		next[series]++
		if n != strconv.Itoa(next[series]) || year != e.IssueDate[:4] {
			w.fail("document %s has number %s, must have %d", e.ID, e.Number, next[series])
		}
	}
}

// checkComplete makes sure that every period that is over long enough was decided on, once.
func (w *world) checkComplete(fresh *pipeline.Prices, decisions []decided) {
	for _, k := range firstPeriods(w.store.sums(nil)) {
		for ; ; k.Period = rating.NextPeriod(k.Period) {
			_, until, ok := fresh.Catalog.PeriodBounds(k.Tenant, k.Contract, k.Period)
			if !ok || w.now.Unix() < until+int64(w.months.grace.Seconds())+5*86_400 {
				break
			}
			if !slices.ContainsFunc(decisions, func(d decided) bool { return d.period == k }) {
				w.fail("period %v is over and was not decided on", k)
			}
			w.met("period decided")
		}
	}
}

// checkSums makes sure that what each decision bills is what the settled usage up to its close
// costs more than that up to the close before it: so all documents together are all that was used.
// What became cheaper by less than a cent, or by less than rounding had left, has no credit note.
func (w *world) checkSums(ledger *rating.Ledger, fresh *pipeline.Prices, decisions []decided) {
	costs := make(map[period]map[string]money.Amount) // of contracts, by usage period
	billed := make(map[period][]string)               // billing periods of contracts
	for _, d := range decisions {
		k := period{Tenant: d.Tenant, Contract: d.Contract}
		billed[k] = append(billed[k], d.Period)
		after, err := costsOf(ledger, fresh, k, billed[k])
		if err != nil {
			w.fail("settle %v: %v", d.period, err)
			return
		}
		var want, slack money.Amount
		for p, cost := range after {
			more := cost.Sub(costs[k][p])
			want = want.Add(more)
			if p < d.Period && more.Sign() < 0 {
				slack = slack.Add(money.MustParse("0.02")) // on two invoices, at most
				w.met("credit of late events")
				if w.months.given[d.Tenant] {
					slack = money.MustParse("1000000") // a person has given it back, or never billed it
				}
			}
		}
		costs[k] = after
		got := w.sumOf(d.documents)
		if len(d.documents) == 0 && want.Round(2, money.HalfUp).Sign() == 0 {
			continue // too little for a document
		}
		if diff := got.Sub(want); diff.Cmp(slack) > 0 || diff.Neg().Cmp(slack) > 0 {
			w.fail("the documents of %v come to %s, the usage to %s", d.period, got, want)
		}
	}
}

// sumOf is what documents come to, unrounded.
func (w *world) sumOf(documents []*billing.Document) (sum money.Amount) {
	for _, doc := range documents {
		amount, err := money.ParseSigned(doc.UnroundedTotal)
		if err != nil {
			w.fail("document %s: %v", doc.ID(), err)
		}
		if doc.Type == billing.CreditNote {
			amount = amount.Neg()
		}
		sum = sum.Add(amount)
	}
	return sum
}

// costsOf is what the usage that counts in some billing periods of a contract costs, by the period
// in which it was used.
func costsOf(ledger *rating.Ledger, fresh *pipeline.Prices, of period, billed []string,
) (map[string]money.Amount, error) {
	sums := make(rating.Sums)
	for _, a := range ledger.Accounts() {
		if a.Tenant != of.Tenant || a.Contract != of.Contract {
			continue
		}
		for _, p := range billed {
			for _, u := range a.Uses(p) {
				sums.Add(&u.Charge, u.Now.Add(u.Before.Neg()))
			}
		}
	}
	settled, err := rating.Settle(sums, fresh.Catalog)
	if err != nil {
		return nil, fmt.Errorf("settle: %w", err)
	}
	costs := make(map[string]money.Amount)
	for i := range settled {
		costs[settled[i].Period] = costs[settled[i].Period].Add(settled[i].Amount)
	}
	return costs, nil
}
