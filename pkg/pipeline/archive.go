package pipeline

import (
	"context"
	"fmt"
	"time"
)

// Bounds of what an archiver holds before it writes.
const (
	archiveBytes = 64 << 20
	archiveAge   = 2 * time.Second
)

// Archiver copies the usage topic into the archive, record by record, and decodes nothing.
type Archiver struct {
	group   Group
	archive Archive

	generation Generation
	held       []Record
	bytes      int
	since      time.Time // when the first held record was read
}

// ArchiveReport says what a step did.
type ArchiveReport struct {
	Records int // that were archived and committed
	Bytes   int // of their values
}

// NewArchiver returns an archiver that reads as a member of a group.
func NewArchiver(group Group, archive Archive) *Archiver {
	return &Archiver{group: group, archive: archive}
}

// Step reads records and, when enough are held or they are old enough, writes and commits them.
// After an error the records are still held, and the next step writes them again.
func (a *Archiver) Step(ctx context.Context, now time.Time) (ArchiveReport, error) {
	report, err := a.step(ctx, now)
	if generationEnded(err) {
		*a = Archiver{group: a.group, archive: a.archive}
		return report, nil
	}
	return report, err
}

func (a *Archiver) step(ctx context.Context, now time.Time) (ArchiveReport, error) {
	if a.generation == nil {
		generation, err := a.group.Next(ctx)
		if err != nil {
			return ArchiveReport{}, fmt.Errorf("join the archivers: %w", err)
		}
		a.generation = generation
	}
	if a.bytes < archiveBytes {
		records, err := a.generation.Fetch(ctx, pollWait)
		if err != nil {
			return ArchiveReport{}, fmt.Errorf("fetch usage to archive: %w", err)
		}
		if len(a.held) == 0 {
			a.since = now
		}
		for i := range records {
			a.bytes += len(records[i].Value) + len(records[i].Key)
		}
		a.held = append(a.held, records...)
	}
	if len(a.held) == 0 || a.bytes < archiveBytes && now.Sub(a.since) < archiveAge {
		return ArchiveReport{}, nil
	}
	if err := a.archive.Archive(ctx, a.held); err != nil {
		return ArchiveReport{}, fmt.Errorf("archive %d records: %w", len(a.held), err)
	}
	next := make(map[int]int64)
	for i := range a.held {
		next[a.held[i].Partition] = a.held[i].Offset + 1
	}
	if err := a.generation.Commit(ctx, next); err != nil {
		return ArchiveReport{}, fmt.Errorf("commit archived records: %w", err)
	}
	report := ArchiveReport{Records: len(a.held), Bytes: a.bytes}
	clear(a.held)
	a.held, a.bytes = a.held[:0], 0
	return report, nil
}
