package rating

import (
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
)

// Offline rates events that are in no log, such as those of a file: all market prices first, then
// everything else, in the order in which it is given.
type Offline struct {
	catalog *catalog.Catalog
	rater   *Rater
	ledger  *Ledger
	count   int64
	closing bool
}

// NewOffline returns an empty ledger to be filled. The catalog takes the market prices in. Closes
// are passed over, see [Offline.ObeyCloses].
func NewOffline(from *catalog.Catalog) *Offline {
	return &Offline{catalog: from, rater: NewRater(from, nil), ledger: NewLedger()}
}

// ObeyCloses makes closes count: what is rated after one counts in a later billing period.
func (o *Offline) ObeyCloses() { o.closing = true }

// Price takes a market price in. It must be called for all of them before Rate is.
func (o *Offline) Price(e *metering.Event) *metering.Rejection {
	if why := e.Problem(); why != nil {
		return why
	}
	return o.catalog.AddMarket(e)
}

// Rate takes any other event in; market prices it passes over.
func (o *Offline) Rate(e *metering.Event) *metering.Rejection {
	if e.Kind == metering.MarketPrice {
		return nil
	}
	o.count++
	if e.Kind == metering.PeriodClose && !o.closing {
		return o.rater.knownTenant(e)
	}
	return o.rater.Rate(e, Position{Offset: o.count}, 0)
}

// Ledger returns the rows of all that was rated.
func (o *Offline) Ledger() *Ledger {
	changes := o.rater.Drain()
	o.ledger.Apply(&changes)
	return o.ledger
}
