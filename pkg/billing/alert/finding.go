package alert

import (
	"math/big"
	"strconv"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/money"
)

// number prints a whole number.
func number(n int64) string { return strconv.FormatInt(n, 10) }

// inPercent is millionths in percent.
func inPercent(millionths int64) money.Amount { return money.New(big.NewInt(millionths), 4) }

// below reports whether a utilisation in millionths is below a policy's threshold, in percent.
func below(p *catalog.Policy, millionths int64) bool {
	return inPercent(millionths).Cmp(p.Threshold("utilisation")) < 0
}
