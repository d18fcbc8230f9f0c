package pipeline

import (
	"context"
	"errors"
	"time"
)

// ErrGenerationEnded is returned by a [Generation] whose partitions belong to somebody else now.
// All state that was built from it must be dropped.
var ErrGenerationEnded = errors.New("generation ended")

// Header is a name and a value that travel with a [Record].
type Header struct {
	Key   string
	Value []byte
}

// Record is one record of the log. Partition, Offset and Time are set by the log; they are ignored
// where a record is appended.
type Record struct {
	Topic     string
	Partition int
	Offset    int64
	Time      time.Time // when the log appended it, or its producer's time (see the topic), UTC
	Key       []byte
	Value     []byte
	Headers   []Header
}

// Group is a member of a consumer group. Its methods may not be called concurrently.
type Group interface {
	// Next blocks until the group has assigned partitions to this member. A committed offset
	// beyond the log's end is an error: it is never reset.
	Next(ctx context.Context) (Generation, error)
	// Close leaves the group.
	Close() error
}

// Generation is the right to read some partitions of a topic, from their committed offsets, until
// the group rebalances. Fetch and Commit may be called concurrently with one another.
type Generation interface {
	// Partitions lists the assigned partitions, in ascending order. It may be empty.
	Partitions() []int
	// Fetch returns records that follow those returned before: in order of offsets and without
	// gaps within a partition, of a bounded size together. It waits at most `wait` for the first
	// and returns none when there is none by then. The records are the caller's to keep.
	Fetch(ctx context.Context, wait time.Duration) ([]Record, error)
	// Commit makes next[partition] the offset at which a later generation starts.
	Commit(ctx context.Context, next map[int]int64) error
}

// Appender appends records to topics. It returns when all of them are durable (acknowledged by all
// in-sync replicas); after an error any part of them may have been appended.
type Appender interface {
	Append(ctx context.Context, records ...Record) error
}

// Tail reads a topic of one partition from its beginning.
type Tail interface {
	// ReadToEnd returns the records that were appended since the last call, up to the end that
	// the log had at some instant after the call began.
	ReadToEnd(ctx context.Context) ([]Record, error)
	Close() error
}
