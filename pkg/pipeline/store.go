package pipeline

import (
	"context"
	"time"

	"github.com/suanpan/suanpan/pkg/rating"
)

// Archive keeps every record of the usage topic as it came.
type Archive interface {
	// Archive writes records durably. Writing a record again changes nothing.
	Archive(ctx context.Context, records []Record) error
}

// Rows keeps what the rater makes of the records. It reads what it wrote.
type Rows interface {
	// Stored says what there is of each tenant.
	Stored(ctx context.Context) (map[string]rating.Stored, error)
	// Closes returns the closes that were recorded of the tenants of some partitions.
	Closes(ctx context.Context, partitions []int) ([]rating.Close, error)
	// Rerates returns the re-ratings that were recorded of the tenants of some partitions.
	Rerates(ctx context.Context, partitions []int) ([]rating.Rerate, error)
	// Find returns all that there is of a need.
	Find(ctx context.Context, need *rating.Need) (*rating.Known, error)
	// Write writes changed rows durably: sessions first, then voids, consumed, hours, re-ratings and
	// closes. After an error any part of them may have been written, or may yet be; writing them
	// again is right.
	Write(ctx context.Context, changes *rating.Changes) error
	// WriteDeadLetters writes dead letters durably; writing one again changes nothing.
	WriteDeadLetters(ctx context.Context, letters []DeadLetter) error
}

// DeadLetter is a record that could not be rated.
type DeadLetter struct {
	Record        // with the topic, partition, offset and time at which the rater found it
	Reason string // see metering.Reason
	Detail string
	Source string // of the event, where it could be read
	ID     string // of the event, where it could be read
	SeenAt time.Time
}

// PeriodKey names the settlement of a contract's usage in one usage period, or a billing period.
type PeriodKey = rating.PeriodKey

// Settlements keeps what the charges of a period cost.
type Settlements interface {
	// Touched returns the periods that have rows written at or after an instant of the store's own
	// clock, and the instant to ask with next time. The zero time asks for all.
	Touched(ctx context.Context, since time.Time) (periods []PeriodKey, next time.Time, err error)
	// Sums adds up the quantities of the charges of periods.
	Sums(ctx context.Context, periods []PeriodKey) (rating.Sums, error)
	// WriteSettlements replaces the settlements of periods, each whole. asOf orders the writes.
	WriteSettlements(ctx context.Context, settled map[PeriodKey][]rating.Settled, asOf time.Time) error
}
