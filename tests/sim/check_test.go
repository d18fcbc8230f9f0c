package sim

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/pkg/rating"
	"github.com/suanpan/suanpan/schemas"
	"github.com/suanpan/suanpan/tests/audit"
)

// header returns the value of a record's header.
func header(r pipeline.Record, name string) (string, bool) {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value), true
		}
	}
	return "", false
}

// misplaced says whether a record is not where its tenant's belong.
func (in *intent) misplaced(r pipeline.Record) bool {
	return in.tenant != "" &&
		(string(r.Key) != in.tenant || partitionOf(in.tenant) != r.Partition)
}

// future says whether an event ends too long after the log had it first.
func (in *intent) future(r pipeline.Record) bool {
	had := r.Time
	if text, ok := header(r, pipeline.HeaderForwardedTime); ok {
		had, _ = time.Parse(time.RFC3339Nano, text)
	}
	return in.end.Sub(had) > time.Minute
}

// ratedDurably checks that the store, or the log, has all that a record has to leave there.
func (w *world) ratedDurably(r pipeline.Record) {
	in := w.fleet.intents[string(r.Value)]
	at := place{schemas.TopicUsage, r.Partition, r.Offset}
	if _, ok := w.store.letters[at]; ok {
		return
	}
	if _, again := header(r, pipeline.HeaderForwardedFrom); in.misplaced(r) && !again {
		if !w.forwardedFrom(r) {
			w.fail("record %v is committed and was not forwarded", at)
		}
		return
	}
	missing := ""
	switch in.kind {
	case "held":
		missing = w.missingSeconds(in)
	case "void":
		for s := in.start.Unix(); s < in.end.Unix(); s++ {
			hour := s - s%3600
			if !has(w.store.voids[key(in.tenant, in.session, hour)].Seconds, s-hour) {
				missing = fmt.Sprintf("voided second %d", s)
			}
		}
	case "consumed":
		for _, sku := range in.skus {
			if _, ok := w.store.consumed[key(in.tenant, in.source, in.id, sku)]; !ok {
				missing = "consumed " + sku
			}
		}
	case "close":
		missing = "the close"
		for _, c := range w.store.closes {
			if c.Tenant == in.tenant && c.Until == in.end.Unix() && c.Offset <= r.Offset {
				missing = ""
			}
		}
	case "rerate":
		if _, ok := w.store.rerates[at]; !ok {
			missing = "the re-rating"
		}
	case "other":
	default:
		missing = "its dead letter"
	}
	if missing != "" {
		w.fail("record %v is committed, but the store lacks %s of %s %s", at, missing, in.kind, in.id)
	}
}

func (w *world) missingSeconds(in *intent) string {
	for _, sku := range in.skus {
		if _, ok := w.store.sessions[key(in.tenant, in.session, sku)]; !ok {
			return "the session's " + sku
		}
		for s := in.start.Unix(); s < in.end.Unix(); s++ {
			hour := s - s%3600
			if w.bug != "add" && !has(w.store.hours[key(in.tenant, hour, in.session, sku)].Used, s-hour) {
				return fmt.Sprintf("second %d of %s", s, sku)
			}
		}
	}
	return ""
}

func has(set metering.Set, second int64) bool {
	for _, span := range set {
		if int64(span.From) <= second && second < int64(span.To) {
			return true
		}
	}
	return false
}

func (w *world) forwardedFrom(r pipeline.Record) bool {
	from := fmt.Sprintf("%s/%d/%d", r.Topic, r.Partition, r.Offset)
	in := w.fleet.intents[string(r.Value)]
	for _, copied := range w.log.usage[partitionOf(in.tenant)] {
		if text, ok := header(copied, pipeline.HeaderForwardedFrom); ok && text == from {
			return string(copied.Key) == in.tenant && bytes.Equal(copied.Value, r.Value)
		}
	}
	return false
}

// verdict is what must become of the records of the log.
type verdict struct {
	rated    []pipeline.Record // in the order of their partitions
	market   []pipeline.Record
	texts    []string // of the documents that count
	letters  map[place]string
	summary  string
	ignored  int // of the catalog topic
	accepted int
}

// judge says what must have become of every record, by the rules and the auditor alone.
func (w *world) judge() (*verdict, error) {
	v := &verdict{letters: make(map[place]string)}
	v.texts, v.ignored = effective(w.log.catalog, w.fleet.longest)
	var events [][]byte
	for _, r := range w.log.market {
		if w.judgeMarket(v, r) {
			events = append(events, r.Value)
			v.market = append(v.market, r)
		}
	}
	audited := len(events)
	for _, partition := range w.log.usage {
		for _, r := range partition {
			if w.judgeUsage(v, r) {
				v.rated = append(v.rated, r)
				// The auditor passes over blank lines, as files may have them.
				events = append(events, []byte(cmp.Or(string(r.Value), "{")))
			}
		}
	}
	summary, rejected, err := audit.Rate([]byte(strings.Join(v.texts, "\n---\n")), events)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	v.summary = summary
	for i, r := range v.rated {
		name := cmp.Or(w.fleet.intents[string(r.Value)].id, fmt.Sprintf("line %d", audited+i+1))
		if len(rejected) > 0 && strings.HasPrefix(rejected[0], name+": ") {
			at := place{schemas.TopicUsage, r.Partition, r.Offset}
			v.letters[at] = strings.TrimPrefix(rejected[0], name+": ")
			rejected = rejected[1:]
		} else {
			v.accepted++
		}
	}
	if len(rejected) > 0 {
		return nil, fmt.Errorf("the auditor rejects what was not sent: %q", rejected)
	}
	return v, nil
}

// judgeMarket says whether a market price counts.
func (w *world) judgeMarket(v *verdict, r pipeline.Record) bool {
	at := place{r.Topic, 0, r.Offset}
	text := string(r.Value)
	in := w.fleet.intents[text]
	switch {
	case strings.Contains(text, `"price":"-1"`):
		v.letters[at] = "invalid_amount"
	case in.kind == "other":
		v.letters[at] = "misrouted"
	case in.end.Before(r.Time): // published too late: ignored, and shown
	case strings.Contains(text, "EUR"):
		v.letters[at] = "price_mismatch"
	default:
		return true
	}
	return false
}

// judgeUsage says whether the auditor has to judge a record.
func (w *world) judgeUsage(v *verdict, r pipeline.Record) bool {
	at := place{r.Topic, r.Partition, r.Offset}
	in := w.fleet.intents[string(r.Value)]
	_, forwarded := header(r, pipeline.HeaderForwardedFrom)
	switch {
	case in.misplaced(r) && forwarded:
		v.letters[at] = "misrouted"
	case in.misplaced(r):
		if !w.forwardedFrom(r) {
			w.fail("record %v was not forwarded", at)
		}
	case in.kind == "market":
		v.letters[at] = "misrouted"
	case in.kind == "other":
		if in.tenant == "nobody" {
			v.letters[at] = "no_tenant"
		}
	case in.future(r):
		v.letters[at] = "future"
	case in.kind == "close", in.kind == "rerate":
	default:
		return true
	}
	return false
}

// check compares all that is there at the end with what must be.
func (w *world) check() {
	v, err := w.judge()
	if err != nil {
		w.fail("%v", err)
		return
	}
	w.event("%d records are rated, %d accepted", len(v.rated), v.accepted)
	if v.accepted < 50 {
		w.fail("only %d events are accepted: the simulation is too small", v.accepted)
	}
	reader := pipeline.NewPrices(&tail{records: &w.log.catalog}, &tail{records: &w.log.market})
	if err := reader.Refresh(context.Background(), w.now); err != nil {
		w.fail("read catalog: %v", err)
		return
	}
	if w.rerated() { // the auditor knows no re-ratings: the rater is held against itself
		_, rejected := w.undisturbed(reader)
		for _, r := range v.rated {
			at := place{r.Topic, r.Partition, r.Offset}
			if v.letters[at] == "no_price" && rejected[at] == "" {
				delete(v.letters, at)
			}
		}
		for at, why := range rejected {
			v.letters[at] = why
		}
	}
	w.checkLetters(v)
	w.checkArchive()
	w.checkReaders(v, reader)
	w.checkMoney(v, reader)
	w.checkBooks(reader)
}

func (w *world) checkLetters(v *verdict) {
	for _, at := range places(v.letters) {
		if _, ok := w.store.letters[at]; !ok {
			w.fail("record %v is no dead letter, must be %s", at, v.letters[at])
		}
		w.met("letter " + v.letters[at])
	}
	for _, at := range places(w.store.letters) {
		l := w.store.letters[at]
		if want := cmp.Or(v.letters[at], "accepted"); l.Reason != want {
			w.fail("record %v is a dead letter, %s: %s; must be %s", at, l.Reason, l.Detail, want)
		}
	}
	told := make(map[place]string)
	for _, r := range w.log.letters {
		var at place
		at.topic, _ = header(r, pipeline.HeaderTopic)
		partition, _ := header(r, pipeline.HeaderPartition)
		offset, _ := header(r, pipeline.HeaderOffset)
		if _, err := fmt.Sscan(partition+" "+offset, &at.partition, &at.offset); err != nil {
			w.fail("dead letter record %d: %v", r.Offset, err)
		}
		told[at], _ = header(r, pipeline.HeaderReason)
		if l := w.store.letters[at]; !bytes.Equal(l.Value, r.Value) {
			w.fail("dead letter record of %v has other bytes than the record", at)
		}
	}
	if diff := gocmp.Diff(v.letters, told, gocmp.AllowUnexported(place{})); diff != "" {
		w.fail("records of the dead letter topic (-want +got):\n%s", diff)
	}
}

func (w *world) checkArchive() {
	total := 0
	for p, records := range w.log.usage {
		total += len(records)
		for _, r := range records {
			kept, ok := w.store.archive[place{schemas.TopicUsage, p, r.Offset}]
			if !ok || !bytes.Equal(kept.Value, r.Value) || !kept.Time.Equal(r.Time) ||
				!bytes.Equal(kept.Key, r.Key) {
				w.fail("record %d/%d is not in the archive as it is", p, r.Offset)
			}
		}
	}
	if len(w.store.archive) != total {
		w.fail("the archive has %d records, the log %d", len(w.store.archive), total)
	}
}

// checkReaders holds what every reader took in against the rules.
func (w *world) checkReaders(v *verdict, fresh *pipeline.Prices) {
	ignored := func(p *pipeline.Prices) string {
		var out []string
		documents := 0
		for _, i := range p.Ignored {
			// Catalog and market are read in turns: only the order within each is the log's.
			out = append(out, fmt.Sprint(i.Topic, i.Offset, i.Reason))
			if i.Topic == schemas.TopicCatalog {
				documents++
			}
		}
		if documents != v.ignored {
			w.fail("a reader ignores %d documents, must ignore %d", documents, v.ignored)
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
	want := ignored(fresh)
	for _, n := range w.nodes {
		// The settler reads the catalog only when there is something to settle.
		if n.alive && n.group == w.raters && ignored(n.prices) != want {
			w.fail("%s ignores other records than a fresh reader:\n%s\n%s", n.name,
				ignored(n.prices), want)
		}
	}
}

// checkMoney compares the bill with the auditor's, and the line items with those of a run in which
// nothing went wrong.
func (w *world) checkMoney(v *verdict, fresh *pipeline.Prices) {
	settled, err := rating.Settle(w.store.sums(nil), fresh.Catalog)
	if err != nil {
		w.fail("settle: %v", err)
		return
	}
	summary := rating.SummaryHeader + "\n"
	for _, line := range rating.Summary(settled) {
		summary += line + "\n"
	}
	if diff := gocmp.Diff(v.summary, summary); diff != "" && !w.rerated() {
		w.fail("bill (-auditor +store):\n%s", diff)
	}
	var kept []rating.Settled
	for _, s := range w.store.settlements {
		kept = append(kept, s.lines...)
	}
	tell := func(lines []rating.Settled) (out []string) {
		for _, s := range lines {
			out = append(out, fmt.Sprint(s.Tenant, " ", s.Key(), " ", s.Quantity, " ", s.Amount))
		}
		slices.Sort(out)
		return out
	}
	if diff := gocmp.Diff(tell(settled), tell(kept)); diff != "" {
		w.fail("settlements (-want +stored):\n%s", diff)
	}
	w.checkItems(fresh)
}

func (w *world) checkItems(fresh *pipeline.Prices) {
	ledger, _ := w.undisturbed(fresh)
	want, err := ledger.LineItems(fresh.Catalog)
	if err != nil {
		w.fail("undisturbed line items: %v", err)
		return
	}
	got, err := w.store.ledger().LineItems(fresh.Catalog)
	if err != nil {
		w.fail("stored line items: %v", err)
		return
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		w.fail("line items (-undisturbed +store):\n%s", diff)
	}
	w.coverage["line items"] += len(got)
}
