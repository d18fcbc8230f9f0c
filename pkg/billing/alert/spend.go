package alert

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
)

// How a spend is found to be out of its usual range.
var (
	// deviationScale makes of a median absolute deviation what a standard deviation would be, where
	// hours are spread normally.
	deviationScale = money.MustParse("1.4826")
	// A deviation counts as this part of the median and of the mean at least, and as this amount:
	// what is always the same does not fire for a trifle.
	leastPart   = money.MustParse("0.05")
	leastAmount = money.MustParse("0.01")
	// rare is the part of the hours that may have been as far out before.
	rare = money.MustParse("0.02")
)

// leastHours of history must there be.
const leastHours = 72

// Spends finds tenants whose spend in one hour is out of its usual range: further from the median
// of the hours before than so many deviations, where a deviation is 1.4826 times the median
// absolute deviation from that median, or the least that counts. Hours without usage count as 0
// from the tenant's first one on; where most hours have none, only those that have count, and an
// hour without is not judged. What happens in more than one hour of fifty is usual, too.
type Spends struct {
	hour     int64
	policies []*catalog.Policy
	looks    []Look
	judged   []map[party]bool // by policy: those that have enough history

	of    party // tenant and currency
	hours []HourSpend
}

// NewSpends returns what judges the hour that begins at a second by policies of one type.
func NewSpends(hour int64, policies []*catalog.Policy) *Spends {
	s := &Spends{hour: hour, policies: policies, looks: make([]Look, len(policies))}
	for range policies {
		s.judged = append(s.judged, make(map[party]bool))
	}
	return s
}

// From is the first second that is needed.
func (s *Spends) From() int64 {
	var days int64
	for _, p := range s.policies {
		days = max(days, p.Whole("days"))
	}
	return s.hour - days*daySeconds
}

// Add takes an hour. They come by tenant, currency and hour.
func (s *Spends) Add(h HourSpend) error {
	of := party{h.Tenant, h.Currency}
	if n := len(s.hours); n > 0 && of == s.of && h.Hour <= s.hours[n-1].Hour {
		return fmt.Errorf("the spend of tenant %s in hour %d is not after %d", h.Tenant, h.Hour,
			s.hours[n-1].Hour)
	}
	if of != s.of {
		s.finish()
		s.of = of
	}
	s.hours = append(s.hours, h)
	return nil
}

// Looks returns what each policy found, when all hours were added.
func (s *Spends) Looks() []Look {
	s.finish()
	for i := range s.looks {
		judged := s.judged[i]
		s.looks[i].Findings = sortFindings(s.looks[i].Findings)
		s.looks[i].Unsure = func(a *Alert) bool { return !judged[party{a.Tenant, a.Subject}] }
	}
	return s.looks
}

// finish judges the tenant and currency whose hours are complete.
func (s *Spends) finish() {
	for i, p := range s.policies {
		if len(s.hours) == 0 || !p.Covers(s.of.tenant, "", "") {
			continue
		}
		from := s.hour - p.Whole("days")*daySeconds
		r, ok := rangeOf(p, s.hours, from, s.hour)
		if !ok {
			continue
		}
		s.judged[i][s.of] = true
		if r.usual() {
			continue
		}
		amount := func(name string, a money.Amount) Figure {
			return Figure{name, a.Round(2, money.HalfUp).String(), s.of.name}
		}
		s.looks[i].Findings = append(s.looks[i].Findings, Finding{
			Tenant: s.of.tenant, Subject: s.of.name, Labels: map[string]string{"currency": s.of.name},
			Query: QuerySpend(s.of.tenant, from, s.hour+metering.Hour),
			Figures: []Figure{
				amount("spend", r.spend), amount("median", r.median), amount("deviation", r.deviation),
				amount("usual_from", r.low), amount("usual_to", r.high),
				{Name: "hour", Value: metering.InstantOf(s.hour).String()},
				{"history", number(int64(len(r.history))), "h"},
			},
		})
	}
	s.hours = s.hours[:0]
}

// spendRange is the usual range of a tenant's spend per hour, and the spend that is judged.
type spendRange struct {
	spend, median, deviation, low, high money.Amount
	history                             []money.Amount // ascending
}

// rangeOf returns the usual range by the hours in [from, hour). It reports false where they are too
// few, or where the hour is not judged.
func rangeOf(p *catalog.Policy, hours []HourSpend, from, hour int64) (spendRange, bool) {
	var r spendRange
	first := hour
	var total money.Amount
	for _, h := range hours {
		switch {
		case h.Hour == hour:
			r.spend = h.Amount
		case h.Hour >= from && h.Hour < hour:
			first = min(first, h.Hour)
			r.history = append(r.history, h.Amount)
			total = total.Add(h.Amount)
		}
	}
	all := (hour - first) / metering.Hour
	if busy := int64(len(r.history)); 2*busy >= all {
		r.history = append(r.history, make([]money.Amount, all-busy)...)
	} else if r.spend.Sign() == 0 {
		return r, false
	}
	if len(r.history) < leastHours {
		return r, false
	}
	slices.SortFunc(r.history, money.Amount.Cmp)
	r.median = median(r.history)
	away := make([]money.Amount, len(r.history))
	for i, a := range r.history {
		away[i] = distance(a, r.median)
	}
	slices.SortFunc(away, money.Amount.Cmp)
	mean := total.MulRatio(big.NewInt(1), big.NewInt(int64(len(r.history))), money.Scale, money.HalfUp)
	r.deviation = median(away)
	for _, least := range []money.Amount{r.median.Mul(leastPart), mean.Mul(leastPart), leastAmount} {
		if r.deviation.Cmp(least) < 0 {
			r.deviation = least
		}
	}
	r.deviation = r.deviation.Mul(deviationScale)
	reach := r.deviation.Mul(p.Threshold("deviations"))
	r.low, r.high = r.median.Sub(reach), r.median.Add(reach)
	if r.low.Sign() < 0 {
		r.low = money.Amount{}
	}
	return r, true
}

// usual reports whether the spend is in its range, or was as far out often enough before.
func (r *spendRange) usual() bool {
	var out int64
	switch {
	case r.spend.Cmp(r.high) > 0:
		for _, a := range r.history {
			if a.Cmp(r.spend) >= 0 {
				out++
			}
		}
	case r.spend.Cmp(r.low) < 0:
		for _, a := range r.history {
			if a.Cmp(r.spend) <= 0 {
				out++
			}
		}
	default:
		return true
	}
	return whole(out).Cmp(rare.Mul(whole(int64(len(r.history))))) > 0
}

// median of amounts in ascending order; of an even number, the mean of the two in the middle.
func median(sorted []money.Amount) money.Amount {
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return sorted[n/2-1].Add(sorted[n/2]).Mul(half)
}

var half = money.MustParse("0.5")

func distance(a, b money.Amount) money.Amount {
	if a.Cmp(b) < 0 {
		return b.Sub(a)
	}
	return a.Sub(b)
}
