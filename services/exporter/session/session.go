// Package session turns leases into usage events: leases and instants go in, sessions and their
// windows come out. It decides which seconds are reported, and nothing else does. It is pure: it
// reads no clock, does no I/O and starts no goroutine; its state can be saved and restored at any
// moment.
//
// A session is one unbroken allocation of a lease on this node, with constant facts. It has a clock
// of its own: the wall clock at its start, plus what the monotonic clock measured since. So a wall
// clock that is set neither adds nor takes a second. All sessions of a lease share that clock.
//
// A window is reported up to the last moment at which the source of the lease vouched for it. While
// a source does not answer, nothing is reported; when it answers again, a long window makes up for
// that if it says that the lease went on. A window that could not be stored is not lost either: the
// next one begins where the last stored one ended.
package session

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"time"
)

// Limits.
const (
	windowMost = 24 * time.Hour // longest window of an event
	pastMost   = 1024           // ended sessions that are remembered
)

// Device is a device that is held, and how much of it.
type Device struct {
	UUID  string
	Milli int64 // thousandths, 1 to 1000
}

// Grant is a lease as its source tells it at one moment.
type Grant struct {
	Key      string // names the allocation among those of its source, and stays the same
	Tenant   string
	Project  string
	Lease    string
	Purchase string
	Region   string
	Labels   map[string]string
	Devices  []Device
	Held     map[string]int64 // SKU to thousandths
	Start    time.Time        // when it began to be usable, by the wall clock; zero: not known
	End      time.Time        // when it ended, or will; zero: not known
	Resumed  bool             // it goes on from somewhere else
	Unusable bool             // its devices are not there: it does not begin yet
}

// Session is what the engine knows of a session. Times are Unix nanoseconds by the session's clock.
type Session struct {
	ID      string
	Source  string
	Grant         // its constant facts; Start and End are as the source told them first and last
	Zero    int64 // the session's time at the monotonic clock's zero
	Begin   int64
	Covered int64 // until when it was reported
	Seen    int64 // until when its source vouched for it
	Finish  int64 // when it ended, if it did
	Last    int64 // when the last reported window began
	Ended   bool
	Told    bool // the source told when it ended; otherwise it was gone
	Closed  bool // the last reported window said that it had ended
}

// Since is when the session began, by its clock.
func (s *Session) Since() time.Time { return time.Unix(0, s.Begin).UTC() }

// same reports whether a grant has the facts of the session.
func (s *Session) same(g *Grant) bool {
	return s.Tenant == g.Tenant && s.Project == g.Project && s.Lease == g.Lease &&
		s.Purchase == g.Purchase && s.Region == g.Region && maps.Equal(s.Labels, g.Labels) &&
		slices.Equal(s.Devices, g.Devices) && maps.Equal(s.Held, g.Held)
}

// end ends the session at an instant, though not before what was reported.
func (s *Session) end(mono int64, told bool) {
	s.Ended, s.Told = true, told
	s.Finish = max(s.Zero+mono, s.Begin, s.Covered)
	s.Seen = s.Finish
}

// unclosed reports whether all of an ended session was reported, but not that it ended.
func (s *Session) unclosed() bool {
	return s.Ended && !s.Closed && s.Covered == s.Finish && s.Last != 0
}

// name gives the session its id, which follows from its facts and start.
func (s *Session) name(node string) {
	sum := sha256.New()
	write := func(text string) {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(text)))
		_, _ = sum.Write(size[:]) // it never fails
		_, _ = sum.Write([]byte(text))
	}
	write(s.Tenant)
	write(s.Lease)
	write(node)
	for _, d := range s.Devices {
		write(d.UUID)
	}
	write("labels")
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		write(key)
		write(s.Labels[key])
	}
	write(s.Since().Format(time.RFC3339Nano))
	s.ID = hex.EncodeToString(sum.Sum(nil)[:16])
}

// normal is the grant in the form in which facts are compared.
func (g Grant) normal() Grant {
	g.Devices = slices.Clone(g.Devices)
	slices.SortFunc(g.Devices, func(a, b Device) int { return cmp.Compare(a.UUID, b.UUID) })
	if len(g.Devices) == 0 {
		g.Devices = nil
	}
	g.Labels, g.Held = maps.Clone(g.Labels), maps.Clone(g.Held)
	return g
}
