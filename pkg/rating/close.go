package rating

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/suanpan/suanpan/pkg/metering"
)

// PeriodKey names a period of a contract; Contract is "" for usage without one.
type PeriodKey struct{ Tenant, Contract, Period string }

// Close is the end of a billing period in the log: what is rated after it counts in a later period.
type Close struct {
	PeriodKey
	From, Until   int64 // the period's seconds, [From, Until)
	CatalogOffset int64 // end of the catalog topic as the sender of the close had read it
	MarketOffset  int64 // the same of the market topic
	At            int64 // second at which the log had the close; 0 where that is not known
	Position
}

// Closes are the closes of periods. Of several closes of one period the first in the log counts.
type Closes map[PeriodKey]Close

// Add takes a close in. It reports whether it is the first of its period so far.
func (c Closes) Add(one *Close) bool {
	if old, ok := c[one.PeriodKey]; ok && old.Offset <= one.Offset {
		return false
	}
	c[one.PeriodKey] = *one
	return true
}

// Billing returns the billing period of usage that lies in a period and is rated at an offset: its
// own, or the next one that is not closed by then. Months go on after a contract's end.
func (c Closes) Billing(key PeriodKey, offset int64) string {
	for {
		closed, ok := c[key]
		if !ok || closed.Offset >= offset {
			return key.Period
		}
		key.Period = NextPeriod(key.Period)
	}
}

// Sorted returns the closes by tenant, contract and period.
func (c Closes) Sorted() []Close {
	out := make([]Close, 0, len(c))
	for _, one := range c {
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b Close) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Contract, b.Contract),
			cmp.Compare(a.Period, b.Period))
	})
	return out
}

// periodForm is how a billing period is written.
const periodForm = "2006-01"

// NextPeriod returns the month after one, both written YYYY-MM.
func NextPeriod(period string) string { return addMonths(period, 1) }

// PreviousPeriod returns the month before one, both written YYYY-MM.
func PreviousPeriod(period string) string { return addMonths(period, -1) }

func addMonths(period string, n int) string {
	t, err := time.Parse(periodForm, period)
	if err != nil {
		panic("BUG: " + period + " is not a month")
	}
	return t.AddDate(0, n, 0).Format(periodForm)
}

// close obeys the close of a period: what this rater rates after it counts in a later one.
func (r *Rater) close(e *metering.Event, at Position, received metering.Instant,
) *metering.Rejection {
	if rejection := r.knownTenant(e); rejection != nil {
		return rejection
	}
	if problem := e.Problem(); problem != nil {
		return problem
	}
	one, rejection := r.closeOf(e, at)
	if rejection != nil {
		return rejection
	}
	one.At = received.Second()
	if rejection := future(e.End, received); rejection != nil {
		return rejection
	}
	if r.closes.Add(one) {
		r.newCloses = append(r.newCloses, *one)
		r.closing[one.Tenant] = true
	}
	r.obeyed++ // even where it was known before it was met again
	return nil
}

// closeOf finds the period that a close is about: the one that ends where it says.
func (r *Rater) closeOf(e *metering.Event, at Position) (*Close, *metering.Rejection) {
	until := e.End.Second()
	month := time.Unix(until-1, 0).UTC().Format(periodForm)
	for _, period := range []string{PreviousPeriod(month), month, NextPeriod(month)} {
		from, end, ok := r.catalog.PeriodBounds(e.Tenant, e.Contract, period)
		if ok && end == until && e.End == metering.InstantOf(until) {
			return &Close{
				PeriodKey: PeriodKey{strings.Clone(e.Tenant), strings.Clone(e.Contract), period},
				From:      from, Until: end,
				CatalogOffset: e.CatalogOffset, MarketOffset: e.MarketOffset, Position: at,
			}, nil
		}
	}
	of := "usage without a contract"
	if e.Contract != "" {
		of = fmt.Sprintf("contract %q", e.Contract)
	}
	return nil, metering.Reject(metering.InvalidWindow, "no billing period of %s of tenant %s ends "+
		"at %s: close a whole month, in the time zone of its contract or price book", of, e.Tenant,
		e.End)
}

// Closing reports whether the tenant has a close that was not drained yet. What is rated of the
// tenant then must be drained after it.
func (r *Rater) Closing(tenant string) bool {
	return r.closing[tenant]
}

// ClosingAny reports whether any tenant has a close that was not drained yet.
func (r *Rater) ClosingAny() bool { return len(r.newCloses) > 0 }
