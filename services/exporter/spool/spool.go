// Package spool keeps records on disk until they are sent: a queue in files, bounded in bytes, that
// survives kill -9 and power cuts. Records go in and come out in one order. What it hides are the
// format, checksums, and what to do with a torn or damaged file. It never drops a record that was
// not sent: when it is full, it takes no more and says so.
//
// Append returns after fsync: what it took is on disk. That a record was sent is noted without
// fsync: what is forgotten of that is sent again.
//
// A file is named by the sequence number of its first record. A record is
//
//	magic "SPL1" | CRC-32C of all that follows | length of what follows | sequence number |
//	time of Append | not before | length of the key | key | value
//
// with numbers in big-endian order, times in Unix nanoseconds.
package spool

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Defaults and limits.
const (
	DefaultMaxBytes     = 1 << 30 // of all files: weeks of a node without Kafka
	defaultSegmentBytes = 8 << 20
	// MaxRecordBytes bounds key and value of a record together.
	MaxRecordBytes = 1 << 20
)

var (
	// ErrFull means that nothing was taken: sending must go on first.
	ErrFull = errors.New("spool is full")
	// ErrLocked means that another process uses the folder.
	ErrLocked = errors.New("spool is in use by another process")
)

// Record is what is kept. Before NotBefore it is not to be sent; zero: at once.
type Record struct {
	Key, Value []byte
	NotBefore  time.Time
}

// Config says where and how much. Only Dir is required.
type Config struct {
	Dir          string // created if it is not there
	MaxBytes     int64  // of all files; default DefaultMaxBytes
	SegmentBytes int64  // of one file, about; default 8 MiB, at most a quarter of MaxBytes
	Now          func() time.Time
	Log          *slog.Logger

	noSync bool // for laws, which open thousands
}

// Stats are what is in the spool, and what went wrong since Open.
type Stats struct {
	Records int64     // that are not sent yet
	Bytes   int64     // of all files
	Oldest  time.Time // when the oldest of them came; zero: there is none
	Lost    int64     // records that were damaged on disk; each was logged
	Torn    int64     // bytes of unfinished records at the ends of files: nobody was told of them
	Full    int64     // times that Append had no room
}

// Spool is an open spool. Its methods may be called concurrently, but only one goroutine may send.
type Spool struct {
	config Config
	lock   *os.File
	cursor *os.File

	mu       sync.Mutex
	segments []segment // oldest first; the last one is written to if active is not nil
	active   *os.File
	next     uint64 // sequence number of the next record
	read     reader
	stats    Stats
}

// segment is a file.
type segment struct {
	first uint64 // sequence number of its first record
	bytes int64
}

// Open opens a spool, with what is left in it.
func Open(config Config) (*Spool, error) {
	if config.MaxBytes <= 0 {
		config.MaxBytes = DefaultMaxBytes
	}
	if config.SegmentBytes <= 0 {
		config.SegmentBytes = defaultSegmentBytes
	}
	config.SegmentBytes = min(config.SegmentBytes, config.MaxBytes/4)
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	s := &Spool{config: config}
	if err := s.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("open spool %s: %w", config.Dir, err), s.Close())
	}
	return s, nil
}

func (s *Spool) open() (err error) {
	const mode = os.O_CREATE | os.O_RDWR
	if s.lock, err = os.OpenFile(s.path("lock"), mode, 0o600); err != nil {
		return err
	}
	// The kernel releases the lock when the process ends, however it does.
	if err := syscall.Flock(int(s.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("%w: %w", ErrLocked, err)
	}
	if s.cursor, err = os.OpenFile(s.path("sent"), mode, 0o600); err != nil {
		return err
	}
	if s.segments, err = listSegments(s.config.Dir); err != nil {
		return err
	}
	for _, g := range s.segments {
		s.stats.Bytes += g.bytes
	}
	sent := readCursor(s.cursor)
	s.next = max(1, sent)
	if n := len(s.segments); n > 0 {
		last, err := s.lastOf(s.segments[n-1])
		if err != nil {
			return err
		}
		s.next = max(s.next, last)
		sent = max(sent, s.segments[0].first)
	} else {
		sent = s.next
	}
	s.read = reader{seq: sent}
	return s.drop()
}

// lastOf returns the sequence number after the last record of a file.
func (s *Spool) lastOf(g segment) (uint64, error) {
	f, err := os.Open(s.segmentPath(g.first))
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // only read from
	next := g.first
	scan := scanner{file: f}
	for {
		entry, err := scan.next()
		if errors.Is(err, io.EOF) {
			return next, nil
		}
		if err != nil {
			return 0, err
		}
		next = max(next, entry.seq+1)
	}
}

// Append takes records, in order. They are on disk when it returns nil. ErrFull: none was taken.
// After any other error some may have been taken: append them again, and they may be sent twice.
func (s *Spool) Append(records ...Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var data []byte
	now := s.config.Now()
	for i := range records {
		if size := len(records[i].Key) + len(records[i].Value); size > MaxRecordBytes {
			return fmt.Errorf("append to spool: record of %d bytes, at most %d", size,
				MaxRecordBytes)
		}
		data = appendEntry(data, s.next+uint64(i), now, &records[i])
	}
	if len(data) == 0 {
		return nil
	}
	if s.stats.Bytes+int64(len(data)) > s.config.MaxBytes {
		s.stats.Full++
		return fmt.Errorf("append to spool: %w: %d bytes", ErrFull, s.stats.Bytes)
	}
	if err := s.write(data); err != nil {
		return fmt.Errorf("append to spool: %w", err)
	}
	if s.next == s.read.seq {
		s.stats.Oldest = now
	}
	s.next += uint64(len(records))
	return nil
}

// write puts data at the end of the last file. After an error that file is written to no more: what
// the disk has of its end is not known.
func (s *Spool) write(data []byte) error {
	if err := s.roll(int64(len(data))); err != nil {
		return err
	}
	g := &s.segments[len(s.segments)-1]
	_, err := s.active.WriteAt(data, g.bytes)
	if err == nil && !s.config.noSync {
		err = s.active.Sync()
	}
	if err == nil {
		g.bytes += int64(len(data))
		s.stats.Bytes += int64(len(data))
		return nil
	}
	truncated := s.active.Truncate(g.bytes)
	err = errors.Join(err, truncated, s.active.Close())
	s.active = nil
	if g.bytes == 0 { // its name is wanted for the next attempt
		err = errors.Join(err, os.Remove(s.segmentPath(g.first)))
		s.segments = s.segments[:len(s.segments)-1]
	}
	return err
}

// roll begins a new file where there is none to write to, or it is large enough.
func (s *Spool) roll(size int64) error {
	if s.active != nil {
		if g := s.segments[len(s.segments)-1]; g.bytes == 0 || g.bytes+size <= s.config.SegmentBytes {
			return nil
		}
		if err := s.active.Close(); err != nil {
			return err
		}
		s.active = nil
	}
	if n := len(s.segments); n > 0 && s.segments[n-1].first == s.next {
		// A file with nothing but the torn beginning of the record that is to come.
		if err := s.remove(n - 1); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(s.segmentPath(s.next), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if !s.config.noSync {
		if err := syncDir(s.config.Dir); err != nil {
			return errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
	}
	s.active = f
	s.segments = append(s.segments, segment{first: s.next})
	return s.drop()
}

// remove deletes a file.
func (s *Spool) remove(i int) error {
	g := s.segments[i]
	if err := os.Remove(s.segmentPath(g.first)); err != nil {
		return err
	}
	s.stats.Bytes -= g.bytes
	s.segments = append(s.segments[:i], s.segments[i+1:]...)
	return nil
}

// drop deletes the files of which all was sent, but for the last.
func (s *Spool) drop() error {
	for len(s.segments) > 1 && s.segments[1].first <= s.read.seq {
		if s.read.file != nil && s.read.first == s.segments[0].first {
			s.read.close()
		}
		if err := s.remove(0); err != nil {
			return err
		}
	}
	return nil
}

// Stats returns what is in the spool.
func (s *Spool) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Records = int64(s.next - s.read.seq)
	if stats.Records == 0 {
		stats.Oldest = time.Time{}
	}
	return stats
}

// Close closes the files and lets others open the spool. Nothing is lost without it.
func (s *Spool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	s.read.close()
	for _, f := range []**os.File{&s.active, &s.cursor, &s.lock} {
		if *f != nil {
			errs = append(errs, (*f).Close())
			*f = nil
		}
	}
	return errors.Join(errs...)
}

func (s *Spool) path(name string) string { return filepath.Join(s.config.Dir, name) }

func (s *Spool) segmentPath(first uint64) string {
	return s.path(fmt.Sprintf("%020d%s", first, suffix))
}
