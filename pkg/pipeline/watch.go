package pipeline

import (
	"context"
	"time"

	"github.com/suanpan/suanpan/pkg/billing/alert"
)

// Watched says what policies look at.
type Watched interface {
	// Loads returns what sessions did that were heard of within 5 minutes before now: over their
	// windows that end in (newest - span, newest], where newest is the end of their newest one.
	Loads(ctx context.Context, now time.Time, span time.Duration) ([]alert.Load, error)
	// Cards returns what cards did that were held between two instants.
	Cards(ctx context.Context, from, until time.Time) ([]alert.CardLoad, error)
	// BusyBetween returns how busy what was held between two instants was.
	BusyBetween(ctx context.Context, from, until time.Time) ([]alert.Busy, error)
	// HourlySpend visits what usage cost in the UTC hours from one second (of an hour) to before
	// another: by tenant, currency, hour, where there was any.
	HourlySpend(ctx context.Context, from, until int64, visit func(alert.HourSpend) error) error
	// Silent returns the running sessions of which nothing was heard for after, but something
	// within: and the record time of the newest usage event of all, zero where there is none.
	Silent(ctx context.Context, now time.Time, after, within time.Duration) (
		all []alert.LastSeen, newest time.Time, err error)
	// Letters counts dead letters since an instant that nobody sent again.
	Letters(ctx context.Context, since time.Time) ([]alert.Letters, error)
	// HeldDocuments returns the documents that wait for a person.
	HeldDocuments(ctx context.Context) ([]alert.HeldDocument, error)
}
