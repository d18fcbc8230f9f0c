// Package rating turns events into rows and rows into money. A [Rater] takes events and keeps sets
// of seconds, one row an hour; [Settle] puts one curve over the sums of each charge. Events and a
// catalog come in; rows, line items and amounts go out. It does no I/O, reads no clock, starts no
// goroutine and uses no float; the same events give the same rows in whatever order they come.
package rating

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/suanpan/suanpan/pkg/catalog"
)

// Charge is what one curve is applied to: all that decides the price of a second or a unit. The
// quantities of one charge are summed before they are priced.
type Charge struct {
	Tenant          string
	Book            string
	BookVersion     int64 // second at which the version starts
	Contract        string
	ContractVersion int64
	SKU             string
	Region          string // of the price, "" if it is for all
	Purchase        string // of the price
	Band            string
	Spot            string // clamped market price, "" unless it follows the market
	Period          string // billing period of the usage, YYYY-MM
	Window          int64  // start of the UTC hour of a ladder that counts by hours, else 0
}

func chargeOf(tenant string, q *catalog.Quote) Charge {
	return Charge{
		Tenant: tenant, Book: q.Book, BookVersion: q.BookVersion,
		Contract: q.Contract, ContractVersion: q.ContractVersion,
		SKU: q.Price.SKU, Region: q.Price.Region, Purchase: q.Price.Purchase,
		Band: q.Band, Spot: q.Spot, Period: q.Period, Window: q.Window,
	}
}

// separator cannot be in a name of the catalog.
const separator = "|"

// Key prints all but the tenant, as the store keeps it.
func (c *Charge) Key() string {
	return strings.Join([]string{
		c.Book, strconv.FormatInt(c.BookVersion, 10),
		c.Contract, strconv.FormatInt(c.ContractVersion, 10),
		c.SKU, c.Region, c.Purchase, c.Band, c.Spot, c.Period, strconv.FormatInt(c.Window, 10),
	}, separator)
}

// ParseCharge reads what [Charge.Key] printed.
func ParseCharge(tenant, key string) (Charge, error) {
	f := strings.Split(key, separator)
	if len(f) != 11 {
		return Charge{}, fmt.Errorf("charge %q has %d parts, not 11", key, len(f))
	}
	c := Charge{
		Tenant: tenant, Book: f[0], Contract: f[2], SKU: f[4], Region: f[5], Purchase: f[6],
		Band: f[7], Spot: f[8], Period: f[9],
	}
	for _, number := range []struct {
		text string
		into *int64
	}{{f[1], &c.BookVersion}, {f[3], &c.ContractVersion}, {f[10], &c.Window}} {
		n, err := strconv.ParseInt(number.text, 10, 64)
		if err != nil {
			return Charge{}, fmt.Errorf("charge %q: %w", key, err)
		}
		*number.into = n
	}
	return c, nil
}

// Compare orders charges by tenant, then period, SKU, purchase and band, then by the rest.
func (c *Charge) Compare(d *Charge) int {
	return cmp.Or(
		cmp.Compare(c.Tenant, d.Tenant), cmp.Compare(c.Period, d.Period),
		cmp.Compare(c.SKU, d.SKU), cmp.Compare(c.Purchase, d.Purchase),
		cmp.Compare(c.Band, d.Band), cmp.Compare(c.Book, d.Book),
		cmp.Compare(c.BookVersion, d.BookVersion), cmp.Compare(c.Contract, d.Contract),
		cmp.Compare(c.ContractVersion, d.ContractVersion), cmp.Compare(c.Region, d.Region),
		cmp.Compare(c.Spot, d.Spot), cmp.Compare(c.Window, d.Window),
	)
}
