package spool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// reader is the place of the oldest record that was not sent.
type reader struct {
	seq   uint64   // of that record
	file  *os.File // that it is in; nil: not open
	first uint64   // of that file
	at    int64    // where in the file
	given []place  // what Peek returned last
}

// place is where a record ends, in the open file.
type place struct {
	next uint64 // number of the record after it
	end  int64
}

func (r *reader) close() {
	if r.file != nil {
		_ = r.file.Close() // only read from
		r.file, r.at = nil, 0
	}
	r.given = nil
}

// Peek returns the oldest records that were not sent, in order: at most most of them and, but for
// the first, at most bytes of keys and values. There may be more. None: all were sent.
func (s *Spool) Peek(most, bytes int) ([]Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &s.read
	r.given = nil
	for r.seq < s.next {
		if err := s.openReader(); err != nil {
			return nil, fmt.Errorf("read spool: %w", err)
		}
		records, err := s.scan(most, bytes)
		if err != nil {
			r.close()
			return nil, fmt.Errorf("read spool: %w", err)
		}
		if len(records) > 0 {
			return records, nil
		}
		next, ok := s.after(r.first)
		if !ok {
			next = s.next
		}
		s.noteLost(r.seq, next)
		r.close()
		r.seq = max(r.seq, next)
	}
	return nil, nil
}

// scan returns records of the open file from the reader's place on, up to the first damage after
// one. None: the file has no more.
func (s *Spool) scan(most, bytes int) ([]Record, error) {
	r := &s.read
	var records []Record
	scan := scanner{file: r.file, at: r.at}
	seq, size := r.seq, 0
	for len(records) < most {
		e, err := scan.next()
		if len(records) > 0 && (err != nil || scan.skipped > 0 || e.seq > seq) {
			break // the next Peek begins there
		}
		s.noteDamage(scan.skipped)
		scan.skipped = 0
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if e.seq < seq { // it was sent
			if len(records) == 0 {
				r.at = scan.at
			}
			continue
		}
		if size += len(e.Key) + len(e.Value); len(records) > 0 && size > bytes {
			break
		}
		if len(records) == 0 {
			s.noteLost(seq, e.seq)
			s.stats.Oldest = e.at
			r.at, r.seq = scan.began, e.seq
		}
		seq = e.seq + 1
		records = append(records, e.Record)
		r.given = append(r.given, place{seq, scan.at})
	}
	return records, nil
}

// openReader opens the file that the next record is in, if no file is open.
func (s *Spool) openReader() error {
	r := &s.read
	if r.file != nil {
		return nil
	}
	for i := len(s.segments) - 1; i >= 0; i-- {
		if first := s.segments[i].first; first <= r.seq || i == 0 {
			f, err := os.Open(s.segmentPath(first))
			if err != nil {
				return err
			}
			r.file, r.first, r.at = f, first, 0
			return nil
		}
	}
	panic("BUG: the spool has records, and no file")
}

// after returns the number of the first record in the file after another one.
func (s *Spool) after(first uint64) (uint64, bool) {
	for _, g := range s.segments {
		if g.first > first {
			return g.first, true
		}
	}
	return 0, false
}

// noteDamage notes bytes of the open file that are no record. A record that was being written when
// the process was killed is among them: nobody was told that it was taken.
func (s *Spool) noteDamage(bytes int64) {
	if bytes == 0 {
		return
	}
	s.stats.Torn += bytes
	s.config.Log.Warn("part of a spool file is no record: torn by a crash, or damaged",
		"file", s.read.file.Name(), "after", s.read.at, "bytes", bytes)
}

// noteLost notes records that were taken and cannot be read any more.
func (s *Spool) noteLost(from, until uint64) {
	if until <= from {
		return
	}
	s.stats.Lost += int64(until - from)
	s.config.Log.Error("records of the spool are damaged and cannot be sent; the platform's own "+
		"windows must make up for them", "first", from, "count", until-from)
}

// Ack notes that the first n records of the last Peek were sent.
func (s *Spool) Ack(n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &s.read
	if n == 0 {
		return nil
	}
	if n > len(r.given) {
		panic(fmt.Sprintf("BUG: %d records acknowledged of %d", n, len(r.given)))
	}
	p := r.given[n-1]
	r.seq, r.at, r.given = p.next, p.end, nil
	if err := writeCursor(s.cursor, r.seq); err != nil {
		return fmt.Errorf("note what was sent: %w", err)
	}
	if err := s.drop(); err != nil {
		return fmt.Errorf("remove sent records: %w", err)
	}
	return nil
}

// Wait returns how long the record must wait before it may be sent.
func (r *Record) Wait(now time.Time) time.Duration {
	if r.NotBefore.IsZero() {
		return 0
	}
	return max(0, r.NotBefore.Sub(now))
}
