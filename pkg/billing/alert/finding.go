package alert

import (
	"cmp"
	"math/big"
	"slices"
	"strconv"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/money"
)

const daySeconds = 86_400

// sortFindings orders findings by what they are about.
func sortFindings(all []Finding) []Finding {
	slices.SortFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Subject, b.Subject))
	})
	return all
}

// number prints a whole number.
func number(n int64) string { return strconv.FormatInt(n, 10) }

// inPercent is millionths in percent.
func inPercent(millionths int64) money.Amount { return money.New(big.NewInt(millionths), 4) }

// below reports whether a utilisation in millionths is below a policy's threshold, in percent.
func below(p *catalog.Policy, millionths int64) bool {
	return inPercent(millionths).Cmp(p.Threshold("utilisation")) < 0
}

// utilisation is the figure of a utilisation in millionths.
func utilisation(name string, millionths int64) Figure {
	return Figure{Name: name, Value: inPercent(millionths).Round(2, money.HalfUp).String(), Unit: "%"}
}

// threshold is the figure of a policy's utilisation.
func threshold(p *catalog.Policy) Figure {
	return Figure{Name: "threshold", Value: p.Threshold("utilisation").String(), Unit: "%"}
}
