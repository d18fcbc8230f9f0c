package pipeline

import (
	"context"
	"time"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/rating"
)

// Bills keeps what documents are made of, and the documents. It reads what it wrote.
type Bills interface {
	// Closes returns the closes that were recorded of the tenants of some partitions; nil partitions
	// are all.
	Closes(ctx context.Context, partitions []int) ([]rating.Close, error)
	// FirstPeriods returns the first usage period of every contract that has rows, and of every
	// tenant that has rows without a contract. Period is that period.
	FirstPeriods(ctx context.Context) ([]PeriodKey, error)
	// FirstRecords returns when the log had the first record of every tenant.
	FirstRecords(ctx context.Context) (map[string]time.Time, error)
	// Uses returns what the charges of contracts have in billing periods, each list in the order of
	// its charges; see [rating.Use]. Rows of later billing periods do not count.
	Uses(ctx context.Context, periods []PeriodKey) (map[PeriodKey][]rating.Use, error)
	// RowLines visits the rows that count in billing periods: by tenant, contract and period, and
	// then in bytewise order of their texts, see [rating.RowLine].
	RowLines(ctx context.Context, periods []PeriodKey,
		visit func(of PeriodKey, line rating.RowLine) error) error
	// Doubts returns what speaks against issuing the documents of billing periods; nothing of those
	// that are sound.
	Doubts(ctx context.Context, periods []PeriodKey, bounds map[PeriodKey][2]int64,
	) (map[PeriodKey]Doubts, error)
	// Documents visits the documents of tenants that count: all but voided ones, by tenant and then
	// in the order in which they were decided on.
	Documents(ctx context.Context, tenants []string, visit func(d *billing.Document) error) error
	// WriteDocuments writes documents durably. Of a document the state of the latest position wins.
	WriteDocuments(ctx context.Context, documents []Document) error
	// Issued counts the documents that have a number.
	Issued(ctx context.Context) (int64, error)
	// Written is the position of the newest state of any document; -1 if there is none. Documents are
	// written in the order of their positions, so all before it are there, too.
	Written(ctx context.Context) (int64, error)
}

// Doubts are what speaks against issuing an invoice.
type Doubts struct {
	DeadLetters int64    // of the tenant, with usage, that the log received in the period
	Overlaps    []string // leases of which one device is covered by two sessions in one second
}

// Document is a document in its newest state.
type Document = billing.Entry
