package catalog

import (
	"fmt"
	"slices"

	"github.com/suanpan/suanpan/pkg/metering"
)

// Entry is a document as the log has it.
type Entry struct {
	Document
	Appended int64  // second at which the log appended it
	Batch    string // names the apply that it was part of
	Replay   bool   // loaded before any usage: it may start in the past
}

// firstsMayBePast are the kinds whose first versions may start in the past: nothing can have been
// rated by them before. Nor can anything have been issued by a Seller or a TaxRule before it was in
// the log: an invoice is a function of the catalog up to the offset that its close names. Money
// that is granted and budgets are decided by when they were known, so they begin when they are
// given.
var firstsMayBePast = []string{"Calendar", "PriceBook", "Seller", "Tenant", "TaxRule"}

// rates are the kinds that usage is rated by.
var rates = []string{"Calendar", "PriceBook", "Tenant", "Contract"}

// FirstMayBePast reports whether the first version of a kind may start before it is in the log.
func FirstMayBePast(kind string) bool { return slices.Contains(firstsMayBePast, kind) }

// AddEntry takes a document from the log in, or says why it must be ignored: all who read the log
// decide alike. A version must be known before anything can be rated by it, so it may not start
// before its append time plus the longest increment or minimum of any book.
func (c *Catalog) AddEntry(e Entry) error {
	if old, ok := c.Version(e.Kind, e.Name, e.From); ok && string(old.JSON) == string(e.JSON) {
		return nil // appended twice
	}
	first, seen := c.batches[e.ID()]
	allowed := e.Replay || FirstMayBePast(e.Kind) && (!seen || first == e.Batch)
	if earliest := c.Earliest(e.Appended, e.Document); !allowed && e.From < earliest {
		c.remember(e.Document)
		return fmt.Errorf("%s: %s starts at %s, before the earliest instant that it could, %s", e.At,
			e.ID(), metering.InstantOf(e.From), metering.InstantOf(earliest))
	}
	if e.Kind == "Calendar" && !e.Replay && e.From < e.Appended && c.named(e.Name) {
		return fmt.Errorf("%s: %s starts in the past, but a price book names it already: seconds may "+
			"have been rated without it", e.At, e.ID())
	}
	if err := c.Add(e.Document); err != nil {
		return err
	}
	if !seen {
		c.batches[e.ID()] = e.Batch
	}
	return nil
}

// named reports whether a price book names a calendar.
func (c *Catalog) named(calendar string) bool {
	for _, b := range c.books {
		for _, v := range b.versions {
			if slices.Contains(v.doc.calendars, calendar) {
				return true
			}
		}
	}
	return false
}

// Earliest is the earliest second at which a version that is appended at a second may start, unless
// it is a first one: what is rated before may reach that far. Kinds that nothing is rated by start
// at once.
func (c *Catalog) Earliest(appended int64, d Document) int64 {
	if !slices.Contains(rates, d.Kind) {
		return appended
	}
	var longest int64
	for name := range c.books {
		longest = max(longest, c.Longest(name))
	}
	if v, ok := d.body.(*Version); ok {
		longest = max(longest, v.Longest())
	}
	return appended + longest
}

// HasFirst reports whether the log has a version of the document's kind and name already.
func (c *Catalog) HasFirst(d Document) bool {
	_, seen := c.batches[d.ID()]
	return seen
}

// Same returns the version that a document repeats: the one with its effective_from or, where the
// document has none, the newest one, if all else is equal.
func (c *Catalog) Same(d Document) (Document, bool) {
	var same Document
	found := false
	for _, old := range c.documents {
		if old.Kind != d.Kind || old.Name != d.Name || found && old.From < same.From {
			continue
		}
		if d.Set && old.From != d.From {
			continue
		}
		same, found = old, true
	}
	if !found {
		return Document{}, false
	}
	again, err := d.WithFrom(same.From)
	if err != nil {
		return Document{}, false
	}
	dated, err := same.WithFrom(same.From)
	return same, err == nil && string(again.JSON) == string(dated.JSON)
}
