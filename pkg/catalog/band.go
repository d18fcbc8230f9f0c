package catalog

import (
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

const daySeconds int64 = 86_400

// band is a named part of the week or the year. It holds when any of its clauses does.
type band struct {
	name     string
	zone     string
	location *time.Location // nil: the book's
	clauses  []clause
}

// clause is either whole local days of a calendar, or a time of day. A time of day that crosses
// midnight belongs to the day on which it began.
type clause struct {
	from, to int64 // local seconds of the day; to < from crosses midnight
	days     uint8 // bit 0 is Sunday
	except   string
	calendar string // whole days of this calendar; the rest is unused
}

const everyDay uint8 = 1<<7 - 1

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

func (r *reader) band(n *yaml.Node) band {
	var b band
	r.mapping(n, "band",
		field{"name", true, func(n *yaml.Node) {
			if b.name = r.name(n, "name"); b.name == Standard {
				r.fail(n, "the name standard is for the seconds that no band covers")
			}
		}},
		field{"timezone", false, func(n *yaml.Node) { b.zone, b.location = r.zone(n) }},
		field{"when", true, func(n *yaml.Node) {
			r.list(n, "when", func(n *yaml.Node) { b.clauses = append(b.clauses, r.clause(n)) })
			if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
				r.fail(n, "a band needs a clause")
			}
		}})
	return b
}

func (r *reader) clause(n *yaml.Node) clause {
	c := clause{days: everyDay}
	var from, to, other *yaml.Node
	r.mapping(n, "clause",
		field{"from", false, func(n *yaml.Node) { from, c.from = n, r.timeOfDay(n, "from") }},
		field{"to", false, func(n *yaml.Node) { to, c.to = n, r.timeOfDay(n, "to") }},
		field{"days", false, func(n *yaml.Node) { other, c.days = n, r.days(n) }},
		field{"except", false, func(n *yaml.Node) { other, c.except = n, r.name(n, "except") }},
		field{"calendar", false, func(n *yaml.Node) { c.calendar = r.name(n, "calendar") }})
	switch {
	case c.calendar != "" && (from != nil || to != nil || other != nil):
		r.fail(n, "calendar stands alone: it means whole days")
	case c.calendar != "":
	case from == nil || to == nil:
		r.fail(n, "a clause has from and to, or calendar")
	case c.from == c.to:
		r.fail(to, "from equals to: whole days are 00:00 to 24:00")
	case c.from == daySeconds:
		r.fail(from, "from is before 24:00")
	}
	return c
}

// timeOfDay reads hh:mm as seconds of the day; 24:00 is the day's end.
func (r *reader) timeOfDay(n *yaml.Node, what string) int64 {
	s := r.text(n, what)
	if s == "24:00" {
		return daySeconds
	}
	t, err := time.Parse("15:04", s)
	if err != nil || len(s) != len("15:04") {
		r.fail(n, "%s %q is not a time of day such as 22:00", what, s)
		return 0
	}
	return int64(t.Hour())*3600 + int64(t.Minute())*60
}

func (r *reader) days(n *yaml.Node) uint8 {
	var days uint8
	r.list(n, "days", func(n *yaml.Node) {
		at := slices.Index(weekdays, r.text(n, "day"))
		if at < 0 {
			r.fail(n, "day %q is none of %s", n.Value, strings.Join(weekdays, ", "))
			return
		}
		days |= 1 << at
	})
	if days == 0 {
		r.fail(n, "days is empty")
	}
	return days
}

func (v *Version) hasBand(name string) bool {
	return slices.ContainsFunc(v.bands, func(b band) bool { return b.name == name })
}

// finishBands checks the bands together and collects where their clauses begin and end.
func (v *Version) finishBands(r *reader, n *yaml.Node) {
	seen := make(map[string]bool)
	for i := range v.bands {
		b := &v.bands[i]
		if seen[b.name] {
			r.fail(n, "there are two bands %q", b.name)
		}
		seen[b.name] = true
		if b.location == nil {
			b.zone, b.location = v.Zone, v.location
		}
		for _, c := range b.clauses {
			if c.calendar == "" {
				v.edges = append(v.edges, c.from, c.to%daySeconds)
			}
			for _, name := range []string{c.calendar, c.except} {
				if name != "" {
					v.calendars = append(v.calendars, name)
				}
			}
		}
	}
	v.edges = append(v.edges, 0)
	slices.Sort(v.edges)
	v.edges = slices.Compact(v.edges)
	slices.Sort(v.calendars)
	v.calendars = slices.Compact(v.calendars)
}

// holds reports whether the clause holds at a local second of a local day.
func (c *clause) holds(day, second int64, isHoliday func(calendar string, day int64) bool) bool {
	if c.calendar != "" {
		return isHoliday(c.calendar, day)
	}
	switch {
	case c.from < c.to:
		if second < c.from || second >= c.to {
			return false
		}
	case second >= c.from:
	case second < c.to:
		day-- // it began yesterday
	default:
		return false
	}
	weekday := (day%7 + 11) % 7 // 1970-01-01 was a Thursday
	return c.days&(1<<weekday) != 0 && (c.except == "" || !isHoliday(c.except, day))
}

// bandAt returns the band that is in force at a second, and the second until which no clause of the
// version begins or ends.
func (v *Version) bandAt(at int64, isHoliday func(string, int64) bool) (name string, until int64) {
	name, until = Standard, at+month31
	for i := range v.bands {
		b := &v.bands[i]
		l := localAt(at, b.location)
		until = min(until, l.next(v.edges))
		if name != Standard {
			continue // only its edges count
		}
		for _, c := range b.clauses {
			if c.holds(l.day, l.second, isHoliday) {
				name = b.name
				break
			}
		}
	}
	return name, until
}

const month31 = 31 * daySeconds

// local is what the clocks of a zone show at a second.
type local struct {
	at     int64
	day    int64 // since 1970-01-01
	second int64 // of the day
	end    int64 // when the zone's offset changes next
}

func localAt(at int64, location *time.Location) local {
	t := time.Unix(at, 0).In(location)
	_, offset := t.Zone()
	shown := at + int64(offset)
	l := local{at: at, day: floorDiv(shown, daySeconds), end: at + month31}
	l.second = shown - l.day*daySeconds
	if _, end := t.ZoneBounds(); !end.IsZero() {
		l.end = end.Unix()
	}
	return l
}

// next is the first second after l at which the clocks show one of the edges, or show a jump.
func (l local) next(edges []int64) int64 {
	ahead := daySeconds - l.second
	for _, edge := range edges {
		if edge > l.second {
			ahead = min(ahead, edge-l.second)
			break
		}
	}
	return min(l.at+ahead, l.end)
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
