package metering

import (
	"cmp"
	"slices"
	"strings"
)

// Kind is the kind of an event; it follows from the CloudEvents type.
type Kind uint8

// The kinds of events. The first four are rated, a close is obeyed; the others are archived and
// checked.
const (
	Held Kind = iota + 1
	Consumed
	Void
	MarketPrice
	Outage
	Checkpoint
	Interrupted
	Queue
	Rerate
	PeriodClose
)

// Label is a name and a value that describe usage.
type Label struct{ Key, Value string }

// Amount is how much of a SKU is held, in thousandths, or consumed, in billionths.
type Amount struct {
	SKU   string
	Milli int64    // of a held event
	Nano  Quantity // of a consumed event
}

// Facts are what is constant in a session. Absent ones have their zero value.
type Facts struct {
	Project      string
	Lease        string
	Purchase     Purchase
	Region       string
	Node         string
	SessionStart Instant
	Resumed      bool
	Labels       []Label // in ascending order of their keys
}

// Event is one accepted form of an event: every field is within its limits. Whether its window and
// its amounts make sense is told by [Event.Problem], as the tenant is judged before them.
type Event struct {
	Kind    Kind
	Source  string
	ID      string
	Tenant  string
	Session string
	Facts
	Start   Instant  // of a held or void event or an outage; from of a re-rating or a close
	End     Instant  // where Start has a meaning; until of a re-rating or a close
	At      Instant  // of every other event
	Amounts []Amount // of a held or consumed event, in ascending order of SKUs

	// Of a market price.
	SKU      string
	Price    string // plain decimal
	Currency string // optional
	Per      string // optional

	// Of a close and, but for the contract, of a re-rating: ends of the topics that it goes by.
	Contract      string // "" for usage without one
	CatalogOffset int64
	MarketOffset  int64

	windowProblem string
	amountProblem string
}

// Problem says what is wrong with the event's window or, if that is sound, with its amounts.
func (e *Event) Problem() *Rejection {
	switch {
	case e.windowProblem != "":
		return &Rejection{InvalidWindow, e.windowProblem}
	case e.amountProblem != "":
		return &Rejection{InvalidAmount, e.amountProblem}
	}
	return nil
}

// Window is the event's window in whole seconds, [from, until). It may be empty.
func (e *Event) Window() (from, until int64) { return e.Start.Second(), e.End.Second() }

// Anchor is the whole second at which the session's increments begin.
func (f *Facts) Anchor() int64 { return f.SessionStart.Second() }

// Difference names the first fact in which f and g differ, "" if they are equal.
func (f *Facts) Difference(g *Facts) string {
	switch {
	case f.Project != g.Project:
		return "project"
	case f.Lease != g.Lease:
		return "lease"
	case f.Purchase != g.Purchase:
		return "purchase"
	case f.Region != g.Region:
		return "region"
	case f.Node != g.Node:
		return "node"
	case f.SessionStart != g.SessionStart:
		return "session_start"
	case f.Resumed != g.Resumed:
		return "resumed"
	case !slices.Equal(f.Labels, g.Labels):
		return "labels"
	}
	return ""
}

// Clone returns facts that share no memory with the bytes that an event was parsed from.
func (f *Facts) Clone() Facts {
	c := *f
	c.Project, c.Lease = strings.Clone(f.Project), strings.Clone(f.Lease)
	c.Region, c.Node = strings.Clone(f.Region), strings.Clone(f.Node)
	c.Purchase = Purchase(strings.Clone(string(f.Purchase)))
	c.Labels = make([]Label, len(f.Labels))
	for i, l := range f.Labels {
		c.Labels[i] = Label{strings.Clone(l.Key), strings.Clone(l.Value)}
	}
	return c
}

// checkWindow finds what is wrong with a window, compared unrounded.
func (e *Event) checkWindow() string {
	switch {
	case e.End <= e.Start:
		return "end " + e.End.String() + " is not after start " + e.Start.String()
	case e.Kind == Held && e.Start < e.SessionStart:
		return "start " + e.Start.String() + " is before session_start " + e.SessionStart.String()
	case (e.Kind == Held || e.Kind == Void) && e.End-e.Start > Instant(MaxWindowSeconds)*nanos:
		return "the window is longer than a day (86400 s): send it in parts"
	}
	return ""
}

func sortLabels(labels []Label) {
	byKey := func(a, b Label) int { return cmp.Compare(a.Key, b.Key) }
	if !slices.IsSortedFunc(labels, byKey) {
		slices.SortFunc(labels, byKey)
	}
}

func sortAmounts(amounts []Amount) {
	bySKU := func(a, b Amount) int { return cmp.Compare(a.SKU, b.SKU) }
	if !slices.IsSortedFunc(amounts, bySKU) {
		slices.SortFunc(amounts, bySKU)
	}
}
