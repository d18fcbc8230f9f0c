package sim

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/pkg/rating"
	"github.com/suanpan/suanpan/schemas"
)

// read is what every reading request begins with: a time in which others do something, or a fault.
func (n *node) read(faults int) error {
	if n.isGone() {
		return errGone
	}
	if n.w.faults {
		if err := n.wait(n.w.now); err != nil {
			return err
		}
	}
	if n.w.fault(faults) {
		return errFault
	}
	return nil
}

func (s *store) putClose(c rating.Close) {
	k := key(c.Tenant, c.Contract, c.Period)
	old, ok := s.closes[k]
	if ok && old.Offset == c.Offset && old != c {
		s.w.fail("two closes of one position differ: %v and %v", old, c)
	}
	if !ok || c.Offset < old.Offset {
		s.closes[k] = c
	}
	s.w.event("close of %s %s %s at %d/%d is recorded", c.Tenant, c.Contract, c.Period, c.Partition,
		c.Offset)
}

func (s *store) putRerate(r rating.Rerate) {
	at := place{schemas.TopicUsage, r.Partition, r.Offset}
	if old, ok := s.rerates[at]; ok && old != r {
		s.w.fail("two re-ratings of one position differ: %v and %v", old, r)
	}
	s.rerates[at] = r
}

// closesOf are the closes of the tenants of partitions; nil is all.
func (s *store) closesOf(partitions []int) []rating.Close {
	var out []rating.Close
	for _, k := range sorted(s.closes) {
		if c := s.closes[k]; partitions == nil || slices.Contains(partitions, c.Partition) {
			out = append(out, c)
		}
	}
	return out
}

func (r rows) Closes(_ context.Context, partitions []int) ([]rating.Close, error) {
	if r.n.w.fault(50) {
		return nil, errFault
	}
	return r.s.closesOf(slices.Clip(append([]int{}, partitions...))), nil
}

func (r rows) Rerates(_ context.Context, partitions []int) ([]rating.Rerate, error) {
	if r.n.w.fault(50) {
		return nil, errFault
	}
	var out []rating.Rerate
	for _, at := range places(r.s.rerates) {
		if slices.Contains(partitions, at.partition) {
			out = append(out, r.s.rerates[at])
		}
	}
	return out, nil
}

// ledger has all rows of the store.
func (s *store) ledger() *rating.Ledger {
	var c rating.Changes
	for _, k := range sorted(s.sessions) {
		c.Sessions = append(c.Sessions, s.sessions[k])
	}
	for _, k := range sorted(s.voids) {
		c.Voids = append(c.Voids, s.voids[k])
	}
	for _, k := range sorted(s.consumed) {
		c.Consumed = append(c.Consumed, s.consumed[k])
	}
	for _, k := range sorted(s.hours) {
		c.Hours = append(c.Hours, s.hours[k])
	}
	ledger := rating.NewLedger()
	ledger.Apply(&c)
	return ledger
}

// bills is the store as a biller's node sees it.
type bills struct {
	n *node
	s *store
}

func (b bills) Closes(_ context.Context, partitions []int) ([]rating.Close, error) {
	if err := b.n.read(20); err != nil {
		return nil, err
	}
	return b.s.closesOf(partitions), nil
}

func (b bills) FirstPeriods(context.Context) ([]period, error) {
	if err := b.n.read(20); err != nil {
		return nil, err
	}
	return firstPeriods(b.s.sums(nil)), nil
}

// firstPeriods are the first usage periods of all contracts that have rows, in order.
func firstPeriods(sums rating.Sums) []period {
	first := make(map[period]string)
	for c := range sums {
		k := period{Tenant: c.Tenant, Contract: c.Contract}
		if old, ok := first[k]; !ok || c.Period < old {
			first[k] = c.Period
		}
	}
	var out []period
	for k, p := range first {
		k.Period = p
		out = append(out, k)
	}
	slices.SortFunc(out, comparePeriods)
	return out
}

func comparePeriods(a, b period) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Contract, b.Contract),
		cmp.Compare(a.Period, b.Period))
}

func (b bills) FirstRecords(context.Context) (map[string]time.Time, error) {
	if err := b.n.read(20); err != nil {
		return nil, err
	}
	first := make(map[string]time.Time)
	for _, r := range b.s.archive {
		tenant := string(r.Key)
		if old, ok := first[tenant]; !ok || r.Time.Before(old) {
			first[tenant] = r.Time
		}
	}
	return first, nil
}

func (b bills) Uses(_ context.Context, periods []period) (map[period][]rating.Use, error) {
	if err := b.n.read(20); err != nil {
		return nil, err
	}
	uses := make(map[period][]rating.Use)
	for _, a := range b.s.ledger().Accounts() {
		for _, k := range periods {
			if k.Tenant == a.Tenant && k.Contract == a.Contract {
				uses[k] = a.Uses(k.Period)
			}
		}
	}
	return uses, nil
}

func (b bills) RowLines(_ context.Context, periods []period,
	visit func(period, rating.RowLine) error,
) error {
	if err := b.n.read(20); err != nil {
		return err
	}
	for _, line := range b.s.ledger().RowLines() {
		k := period{Tenant: line.Charge.Tenant, Contract: line.Charge.Contract, Period: line.Billing}
		if slices.Contains(periods, k) {
			if err := visit(k, line); err != nil {
				return err
			}
		}
	}
	return nil
}

// Doubts counts the dead letters with usage that came in a period or a day after it.
func (b bills) Doubts(_ context.Context, periods []period, bounds map[period][2]int64,
) (map[period]pipeline.Doubts, error) {
	if err := b.n.read(20); err != nil {
		return nil, err
	}
	out := make(map[period]pipeline.Doubts)
	for _, k := range periods {
		var d pipeline.Doubts
		for _, l := range b.s.letters {
			at := l.Time.Unix()
			if l.Topic == schemas.TopicUsage && string(l.Key) == k.Tenant && at >= bounds[k][0] &&
				at < bounds[k][1]+86_400 && strings.Contains(string(l.Value), "suanpan.usage.") {
				d.DeadLetters++
			}
		}
		if len(k.Tenant+k.Contract+k.Period)%3 == 0 && k.Period > b.n.w.start.Format("2006") {
			d.Overlaps = []string{"x"} // as good as any reason to hold documents
		}
		if d.DeadLetters > 0 || len(d.Overlaps) > 0 {
			out[k] = d
		}
	}
	return out, nil
}

// counted are the documents of a tenant, or of all for "", in the order of their places.
func (s *store) counted(tenant string) []billing.Entry {
	var all []billing.Entry
	for _, k := range sorted(s.documents) {
		if e := s.documents[k]; tenant == "" || e.Tenant == tenant {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b billing.Entry) int { return cmp.Compare(a.Place, b.Place) })
	return all
}

func (b bills) Documents(_ context.Context, tenants []string,
	visit func(*billing.Document) error,
) error {
	if err := b.n.read(20); err != nil {
		return err
	}
	for _, tenant := range slices.Sorted(slices.Values(tenants)) {
		for _, e := range b.s.counted(tenant) {
			if e.Status == billing.Voided {
				continue
			}
			if err := visit(&e.Document); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b bills) DocumentsBefore(_ context.Context, tenant string, offset int64,
	visit func(*billing.Document) error,
) error {
	if err := b.n.read(20); err != nil {
		return err
	}
	for _, e := range b.s.counted(tenant) {
		if e.Decided >= offset || e.Status == billing.Voided && e.Offset <= offset {
			continue
		}
		if err := visit(&e.Document); err != nil {
			return err
		}
	}
	return nil
}

// WriteDocuments writes all or none: they are one insert into one partition.
func (b bills) WriteDocuments(_ context.Context, entries []pipeline.Document) error {
	entries = slices.Clone(entries)
	return b.n.call("insert documents", 1, func(int) {
		for _, e := range entries {
			old, ok := b.s.documents[e.ID]
			if !ok || old.Offset <= e.Offset {
				b.s.documents[e.ID] = e
			}
			b.n.w.event("document %s %s %s %s is written", e.ID, e.Status, e.Number, e.Total)
		}
	})
}

func (b bills) Issued(context.Context) (int64, error) {
	if err := b.n.read(20); err != nil {
		return 0, err
	}
	var n int64
	for _, e := range b.s.documents {
		if e.Status == billing.Issued {
			n++
		}
	}
	return n, nil
}

func (b bills) Written(context.Context) (int64, error) {
	if err := b.n.read(20); err != nil {
		return 0, err
	}
	last := int64(-1)
	for _, e := range b.s.documents {
		last = max(last, e.Offset)
	}
	return last, nil
}

// archive is the store as an archiver's node sees it.
type archive struct {
	n *node
	s *store
}

func (a archive) Archive(_ context.Context, records []pipeline.Record) error {
	records = slices.Clone(records)
	return a.n.call("archive", len(records), func(i int) {
		r := records[i]
		at := place{r.Topic, r.Partition, r.Offset}
		if old, ok := a.s.archive[at]; ok && !bytes.Equal(old.Value, r.Value) {
			a.n.w.fail("record %v was archived with other bytes before", at)
		}
		a.s.archive[at] = r
	})
}

func places[V any](m map[place]V) []place {
	var out []place
	for at := range m {
		out = append(out, at)
	}
	slices.SortFunc(out, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition),
			cmp.Compare(a.offset, b.offset))
	})
	return out
}
