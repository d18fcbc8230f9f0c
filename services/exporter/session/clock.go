package session

import "time"

// Instant is one moment by both clocks of a node. The monotonic one, which counts from the node's
// boot, measures; the wall clock only names the moment and may be set.
type Instant struct {
	Mono time.Duration
	Wall time.Time
}

// stepNanos is by how much the clocks must come apart for the wall clock to have been set.
const stepNanos = int64(200 * time.Millisecond)

// periodsMost bounds how many settings of the wall clock are remembered.
const periodsMost = 64

// clock knows how the wall clock was set since the node's boot, so that a time which somebody else
// noted by it can be found on the monotonic clock.
type clock struct {
	Periods []period // oldest first
	Last    int64    // the last instant that was observed, monotonic nanoseconds
}

// period is a time in which the wall clock was not set.
type period struct {
	From   int64 // the last instant that was observed before it, monotonic nanoseconds
	Seen   int64 // the first one in it
	Offset int64 // of the wall clock, Unix nanoseconds, from the monotonic one
}

// observe takes in what both clocks show.
func (c *clock) observe(now Instant) {
	mono := int64(now.Mono)
	offset := now.Wall.UnixNano() - mono
	if n := len(c.Periods); n == 0 {
		c.Periods = append(c.Periods, period{mono, mono, offset})
	} else if d := offset - c.Periods[n-1].Offset; d > stepNanos || d < -stepNanos {
		c.Periods = append(c.Periods, period{c.Last, mono, offset})
		if n == periodsMost {
			c.Periods = c.Periods[1:]
		}
	}
	c.Last = max(c.Last, mono)
}

// offset is the wall clock's at the last instant.
func (c *clock) offset() int64 { return c.Periods[len(c.Periods)-1].Offset }

// find returns when the wall clock showed a time, and its offset then. A time that it showed twice
// counts as the later one (so a setting back by less than what lies between two observations may be
// off by as much), and one that it never showed counts from the first or last setting.
func (c *clock) find(wall time.Time) (mono, offset int64) {
	at := wall.UnixNano()
	until := c.Last
	for i := len(c.Periods) - 1; i >= 0; i-- {
		p := c.Periods[i]
		mono := at - p.Offset
		if mono <= until && (mono >= p.From || i == 0) {
			return mono, p.Offset
		}
		until = p.Seen
	}
	return at - c.offset(), c.offset()
}
