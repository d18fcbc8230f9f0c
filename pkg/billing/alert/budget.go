package alert

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
	"github.com/suanpan/suanpan/pkg/rating"
)

// BudgetStatus is how a budget stands.
type BudgetStatus struct {
	*catalog.Budget
	Period   string // YYYY-MM or YYYY-MM-DD, local
	From     int64  // its first second
	Until    int64  // the second after its last
	Spend    money.Amount
	Forecast money.Amount // at the period's end, at the present pace
	Reaches  int64        // second at which the amount is reached at this pace; 0: not in the period

	day int64 // of a daily budget: its period, since 1970-01-01
}

// Share is the part of the budget's amount that is spent, with four decimals.
func (s *BudgetStatus) Share() money.Amount {
	return divide(s.Spend, s.Amount, 4)
}

// divide is a / b for amounts, rounded half up.
func divide(a, b money.Amount, places int) money.Amount {
	const most = 3 * money.Scale // decimals of spends, which are products
	den, err := b.Scaled(most)
	if err != nil {
		panic("BUG: a spend has too many decimals: " + err.Error())
	}
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(most), nil)
	return a.MulRatio(scale, den, places, money.HalfUp)
}

// Standing works out how a budget stands at a second. Uses are those of its tenant's charges in the
// running billing periods; those in other currencies do not count. It reports false where the
// tenant has no price book then.
func Standing(b *catalog.Budget, uses []ScopeUse, from *catalog.Catalog, now int64) (
	BudgetStatus, bool, error,
) {
	s := BudgetStatus{Budget: b}
	if !s.bound(from, now) {
		return s, false, nil
	}
	for i := range uses {
		if uses[i].Charge.Tenant != b.Tenant {
			continue
		}
		spend, err := s.spent(&uses[i], from)
		if err != nil {
			return s, false, fmt.Errorf("budget %s: %w", b.Name, err)
		}
		s.Spend = s.Spend.Add(spend)
	}
	s.foresee(now)
	return s, true, nil
}

// bound finds the running period: the local day or month, by the zone of the tenant's contract.
func (s *BudgetStatus) bound(from *catalog.Catalog, now int64) bool {
	for _, binding := range slices.Backward(from.Bindings(s.Tenant)) {
		if binding.From > now || binding.Location == nil {
			continue
		}
		local := time.Unix(now, 0).In(binding.Location)
		if !s.Daily {
			s.Period = local.Format("2006-01")
			var ok bool
			s.From, s.Until, ok = from.PeriodBounds(s.Tenant, binding.Contract, s.Period)
			return ok
		}
		s.Period = local.Format(time.DateOnly)
		year, month, day := local.Date()
		s.day = time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / 86_400
		s.From = time.Date(year, month, day, 0, 0, 0, 0, binding.Location).Unix()
		s.Until = time.Date(year, month, day+1, 0, 0, 0, 0, binding.Location).Unix()
		return true
	}
	return false
}

// spent is what the budget's scope has of a charge: its amount by quantity, or at list prices.
func (s *BudgetStatus) spent(u *ScopeUse, from *catalog.Catalog) (money.Amount, error) {
	if !strings.HasPrefix(s.Period, u.Charge.Period) || u.Whole.Sign() <= 0 {
		return money.Amount{}, nil
	}
	if u.curve == nil {
		curve, err := rating.CurveOf(&u.Charge, from)
		if err != nil {
			return money.Amount{}, err
		}
		u.curve, u.total = &curve, curve.Total(u.Whole)
	}
	if u.curve.Currency() != s.Currency {
		return money.Amount{}, nil
	}
	var scope metering.Quantity
	u.of(s.Project, func(p *ScopePart) {
		if s.covers(p) {
			scope = scope.Add(p.Quantity)
		}
	})
	if s.List {
		return u.curve.UnitPrice().MulRatio(scope.Big(), u.curve.Sold(), 2*money.Scale,
			money.HalfUp), nil
	}
	if scope == u.Whole {
		return u.total, nil
	}
	return u.total.MulRatio(scope.Big(), u.Whole.Big(), 2*money.Scale, money.HalfUp), nil
}

// covers reports whether a part of the budget's project counts: by its labels and its day.
func (s *BudgetStatus) covers(p *ScopePart) bool {
	for name, value := range s.Labels {
		if p.Labels[name] != value {
			return false
		}
	}
	return !s.Daily || p.Day == s.day
}

// foresee goes on at the pace of the period so far.
func (s *BudgetStatus) foresee(now int64) {
	s.Forecast = s.Spend
	passed := now - s.From
	if passed <= 0 || s.Spend.Sign() <= 0 {
		return
	}
	s.Forecast = s.Spend.MulRatio(big.NewInt(s.Until-s.From), big.NewInt(passed), money.Scale,
		money.HalfUp)
	if s.Spend.Cmp(s.Amount) >= 0 || s.Forecast.Cmp(s.Amount) < 0 {
		return
	}
	seconds := divide(s.Amount.MulInt(big.NewInt(passed)), s.Spend, 0)
	if n, err := seconds.Scaled(0); err == nil && n.IsInt64() {
		s.Reaches = min(s.From+n.Int64(), s.Until)
	}
}

// Reached returns the alerts of the thresholds that the budget has reached, the lowest first. The
// spend counts before tax; exactly the threshold is reached.
func (s *BudgetStatus) Reached(now int64) []Alert {
	var out []Alert
	for _, threshold := range s.Thresholds {
		if !s.reaches(threshold) {
			continue
		}
		a := Alert{
			Status: Firing, Kind: Budget, Tenant: s.Tenant, Name: s.Name, Version: s.Budget.From,
			Period: s.Period, Threshold: threshold.String(), Spend: s.Spend.String(),
			Amount: s.Amount.String(), Currency: s.Currency, Forecast: s.Forecast.String(),
			At: metering.InstantOf(now).String(), Owner: s.Owner, To: contacts(s.Notify),
			Query: QueryBudget(s.Budget, s.Period),
		}
		a.Key = budgetKey(a.Name, a.Version, a.Period, a.Threshold)
		a.ID = recordID(a.Key, Firing)
		out = append(out, a)
	}
	return out
}

func (s *BudgetStatus) reaches(threshold money.Amount) bool {
	return s.Spend.Sign() > 0 && s.Spend.Cmp(s.Amount.Mul(threshold)) >= 0
}

// Settled returns what resolves of alerts of budgets: because the budget has changed or is no more,
// its period is over, or its spend has fallen, which it says of the standings alone. A budget does
// not fire a threshold again in the same period.
func Settled(h *History, budgets []*catalog.Budget, standings []BudgetStatus,
	from *catalog.Catalog, now int64,
) []Alert {
	inForce := make(map[string]*catalog.Budget)
	for _, b := range budgets {
		inForce[b.Name] = b
	}
	stands := make(map[string]*BudgetStatus)
	for i := range standings {
		stands[standings[i].Name] = &standings[i]
	}
	var out []Alert
	for a := range h.Open() {
		if a.Kind != Budget || now < a.Version { // or the clock went back
			continue
		}
		b := inForce[a.Name]
		if b == nil || b.From > a.Version {
			out = append(out, a.resolve(Ended, now))
			continue
		}
		period := from.PeriodOf(b, now)
		if b.From != a.Version || period == "" || period < a.Period {
			continue // the clock went back
		}
		s := stands[a.Name]
		threshold, err := money.ParseExact(a.Threshold)
		switch {
		case period > a.Period:
			out = append(out, a.resolve(Over, now))
		case err == nil && s != nil && s.Period == a.Period && !s.reaches(threshold):
			fallen := a.resolve(Recovered, now)
			fallen.Spend, fallen.Forecast = s.Spend.String(), s.Forecast.String()
			out = append(out, fallen)
		}
	}
	return out
}

// SortStandings orders by how much of the budget is spent, the most first, then by name.
func SortStandings(all []BudgetStatus) {
	slices.SortFunc(all, func(a, b BudgetStatus) int {
		return cmp.Or(b.Share().Cmp(a.Share()), cmp.Compare(a.Name, b.Name))
	})
}
