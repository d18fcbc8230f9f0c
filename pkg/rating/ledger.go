package rating

import (
	"fmt"
	"maps"
	"slices"

	"github.com/suanpan/suanpan/pkg/catalog"
)

// Ledger is a set of rows in memory, by the same rules as a store: of the states of a row the
// larger wins, of the facts of a session and of repeated events the first in the log.
type Ledger struct {
	sessions map[ledgerSession]SessionRow
	voids    map[HourKey]VoidRow
	consumed map[ledgerConsumed]ConsumedRow
	hours    map[ledgerHour]Row
	closes   Closes
	rerates  []Rerate
}

type ledgerSession struct {
	SessionKey
	sku string
}

type ledgerHour struct {
	HourKey
	sku string
}

type ledgerConsumed struct{ tenant, source, id, sku string }

// NewLedger returns an empty ledger.
func NewLedger() *Ledger {
	return &Ledger{
		sessions: make(map[ledgerSession]SessionRow),
		voids:    make(map[HourKey]VoidRow),
		consumed: make(map[ledgerConsumed]ConsumedRow),
		hours:    make(map[ledgerHour]Row),
		closes:   make(Closes),
	}
}

// Apply takes changed rows in.
func (l *Ledger) Apply(c *Changes) {
	for _, s := range c.Sessions {
		key := ledgerSession{s.SessionKey, s.SKU}
		if old, ok := l.sessions[key]; !ok || s.FirstWins() > old.FirstWins() {
			l.sessions[key] = s
		}
	}
	for _, v := range c.Voids {
		if v.Seconds.Len() > l.voids[v.HourKey].Seconds.Len() {
			l.voids[v.HourKey] = v
		}
	}
	for _, row := range c.Consumed {
		key := ledgerConsumed{row.Tenant, row.Source, row.ID, row.SKU}
		if old, ok := l.consumed[key]; !ok || row.FirstWins() > old.FirstWins() {
			l.consumed[key] = row
		}
	}
	for i := range c.Hours {
		key := ledgerHour{c.Hours[i].HourKey, c.Hours[i].SKU}
		if old, ok := l.hours[key]; !ok || c.Hours[i].Version() > old.Version() {
			l.hours[key] = c.Hours[i]
		}
	}
	for _, one := range c.Rerates {
		if !slices.ContainsFunc(l.rerates, func(have Rerate) bool {
			return have.Partition == one.Partition && have.Offset == one.Offset
		}) {
			l.rerates = append(l.rerates, one)
		}
	}
	for i := range c.Closes {
		l.closes.Add(&c.Closes[i])
	}
}

// Closes returns the closes that were obeyed.
func (l *Ledger) Closes() Closes { return l.closes }

// Find returns what the ledger has of a need.
func (l *Ledger) Find(need *Need) *Known {
	known := new(Known)
	sessions := make(map[SessionKey]bool, len(need.Sessions))
	maps.Copy(sessions, need.Sessions)
	wanted := func(key HourKey) bool {
		return need.Hours[key] || slices.ContainsFunc(need.Spans, func(s HourSpan) bool {
			return s.Tenant == key.Tenant && key.Hour >= s.From && key.Hour < s.Until
		})
	}
	for key, v := range l.voids {
		if wanted(key) {
			sessions[key.SessionKey] = true
			known.Voids = append(known.Voids, VoidRow{key, v.Seconds.Clone()})
		}
	}
	for _, row := range l.consumed {
		if slices.ContainsFunc(need.Spans, func(s HourSpan) bool {
			return s.Tenant == row.Tenant && row.At >= s.From && row.At < s.Until
		}) {
			known.Consumed = append(known.Consumed, row)
		}
	}
	for _, row := range l.hours {
		if wanted(row.HourKey) {
			sessions[row.SessionKey] = true
			row.Used, row.Voided = row.Used.Clone(), row.Voided.Clone()
			row.Segments = append([]Segment(nil), row.Segments...)
			known.Hours = append(known.Hours, row)
		}
	}
	for _, s := range l.sessions {
		if sessions[s.SessionKey] {
			known.Sessions = append(known.Sessions, s)
		}
	}
	return known
}

// Rerates returns the re-ratings that were obeyed, in the order of their offsets.
func (l *Ledger) Rerates() []Rerate { return l.rerates }

// Stored says what the ledger has of each tenant.
func (l *Ledger) Stored() map[string]Stored {
	stored := make(map[string]Stored)
	see := func(tenant string, hour int64) {
		s, ok := stored[tenant]
		if !ok {
			s.Hour = -1
		}
		stored[tenant] = Stored{Sessions: true, Hour: max(s.Hour, hour)}
	}
	for key := range l.sessions {
		see(key.Tenant, -1)
	}
	for key := range l.voids {
		see(key.Tenant, key.Hour)
	}
	for key := range l.hours {
		see(key.Tenant, key.Hour)
	}
	return stored
}

// Sums returns the quantities of all charges.
func (l *Ledger) Sums() Sums {
	sums := make(Sums)
	for _, row := range l.hours {
		for i := range row.Segments {
			s := &row.Segments[i]
			sums.Add(s.Charge, s.Quantity(row.Milli))
		}
	}
	for _, row := range l.consumed {
		sums.Add(row.Charge, row.Nano)
	}
	return sums
}

// LineItems returns the line items of all rows, settled by a catalog, in their order.
func (l *Ledger) LineItems(from *catalog.Catalog) ([]LineItem, error) {
	settled, err := Settle(l.Sums(), from)
	if err != nil {
		return nil, err
	}
	items := newItems(settled)
	for _, row := range l.hours {
		session, ok := l.sessions[ledgerSession{row.SessionKey, row.SKU}]
		if !ok {
			return nil, fmt.Errorf("unfold hour of session %s: it has no session row", row.Session)
		}
		for i := range row.Segments {
			items.held(&row, &row.Segments[i], &session.Facts)
		}
	}
	for _, row := range l.consumed {
		items.consumed(&row)
	}
	return items.finish(), nil
}
