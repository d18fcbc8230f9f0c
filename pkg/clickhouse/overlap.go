package clickhouse

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/pkg/rating"
	"github.com/suanpan/suanpan/schemas"
)

// place is where two sessions may have held the same device.
type place struct{ tenant, lease, node string }

// tenure is a session at a place, with the first and the last hour that it has in a period.
type tenure struct {
	session     string
	first, last int64
}

// overlapSessions is how many sessions are looked at together, or as many as one place has.
const overlapSessions = 2000

// overlaps finds the leases of which two sessions were billed for one device in the same second.
// Nearly all sessions of a lease come one after the other, and are told apart by their hours; then
// the seconds of the others are compared, and only of those that share some the devices are looked
// up in the archive.
func (s *Store) overlaps(ctx context.Context, keys []pipeline.PeriodKey, times [2]int64,
	doubts map[pipeline.PeriodKey]pipeline.Doubts,
) error {
	leases := make(map[place]bool) // without nodes
	for _, list := range tenantsOf(keys) {
		places := make(map[rating.SessionKey]place)
		look := func() error {
			contested, err := s.contested(ctx, places, times)
			if err == nil {
				err = s.sharedDevices(ctx, places, contested, times, leases)
			}
			clear(places)
			return err
		}
		near, err := s.nearSessions(ctx, list.quoted, times)
		if err != nil {
			return fmt.Errorf("find sessions of one lease: %w", err)
		}
		for at, sessions := range near {
			for _, name := range sessions {
				places[rating.SessionKey{Tenant: at.tenant, Session: name}] = at
			}
			if len(places) >= overlapSessions {
				if err := look(); err != nil {
					return err
				}
			}
		}
		if err := look(); err != nil {
			return err
		}
	}
	for _, k := range keys {
		d := doubts[k]
		for at := range leases {
			if at.tenant == k.Tenant {
				d.Overlaps = append(d.Overlaps, at.lease)
			}
		}
		if len(d.Overlaps) > 0 {
			slices.Sort(d.Overlaps)
			doubts[k] = d
		}
	}
	return nil
}

// nearSessions returns the sessions that share an hour with another one of their lease and node, or
// are between two hours that the other has.
func (s *Store) nearSessions(ctx context.Context, tenants string, times [2]int64) (
	map[place][]string, error,
) {
	query := strings.NewReplacer("{tenants}", "tenant IN ("+tenants+")", "{hours}",
		fmt.Sprintf("hour >= %d AND hour < %d", metering.HourOf(times[0]), times[1])).Replace(`
		SELECT h.tenant AS tenant, f.lease AS lease, f.node AS node, groupArray(h.session),
			groupArray(toInt64(h.first)), groupArray(toInt64(h.last))
		FROM
		(
			SELECT tenant, session, min(hour) AS first, max(hour) AS last FROM hours
			WHERE {tenants} AND {hours} GROUP BY tenant, session
		) AS h
		INNER JOIN
		(
			SELECT DISTINCT tenant, session, lease, node FROM sessions FINAL
			WHERE {tenants} AND node != '' AND (tenant, session) IN (
				SELECT tenant, session FROM hours WHERE {tenants} AND {hours})
		) AS f ON h.tenant = f.tenant AND h.session = f.session
		GROUP BY tenant, lease, node HAVING count() > 1`)
	near := make(map[place][]string)
	err := s.each(ctx, query, func(row scanner) error {
		var at place
		var names []string
		var first, last []int64
		err := row.Scan(&at.tenant, &at.lease, &at.node, &names, &first, &last)
		if err != nil {
			return err
		}
		tenures := make([]tenure, len(names))
		for i := range names {
			tenures[i] = tenure{names[i], first[i], last[i]}
		}
		if shared := sharedHours(tenures); len(shared) > 0 {
			near[at] = shared
		}
		return nil
	})
	return near, err
}

// sharedHours returns the sessions that are not over before another one begins, or begin before.
func sharedHours(all []tenure) []string {
	slices.SortFunc(all, func(a, b tenure) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.session, b.session))
	})
	var shared []string
	before := int64(-1) // the last hour of those that began earlier
	for i, t := range all {
		if t.first <= before || i+1 < len(all) && all[i+1].first <= t.last {
			shared = append(shared, t.session)
		}
		before = max(before, t.last)
	}
	return shared
}

// contested returns the billed seconds of a period of the hours in which two sessions at one place
// have a common one.
func (s *Store) contested(ctx context.Context, places map[rating.SessionKey]place, times [2]int64,
) (map[rating.HourKey]metering.Set, error) {
	type meeting struct {
		place
		hour int64
	}
	billed := make(map[meeting]map[string]metering.Set)
	names := make(map[rating.SessionKey]bool, len(places))
	for key := range places {
		names[key] = true
	}
	for _, list := range lists(sessionTuples(names)) {
		err := s.each(ctx, fmt.Sprintf(`SELECT tenant, session, hour, used, voided FROM hours FINAL
			WHERE (tenant, session) IN (%s) AND hour >= %d AND hour < %d`, list,
			metering.HourOf(times[0]), times[1]), func(row scanner) error {
			var key rating.HourKey
			var hour time.Time
			var ends [2][]uint16
			if err := row.Scan(&key.Tenant, &key.Session, &hour, &ends[0], &ends[1]); err != nil {
				return err
			}
			used, err := unflatten(ends[0])
			if err != nil {
				return err
			}
			voided, err := unflatten(ends[1])
			if err != nil {
				return err
			}
			at := meeting{places[key.SessionKey], hour.Unix()}
			if billed[at] == nil {
				billed[at] = make(map[string]metering.Set)
			}
			set := billed[at][key.Session] // of all SKUs
			for _, span := range without(used, voided) {
				if span, ok := within(at.hour, at.hour+int64(span.From), at.hour+int64(span.To),
					times); ok {
					set.Add(span, nil)
				}
			}
			billed[at][key.Session] = set
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("compare the seconds of sessions: %w", err)
		}
	}
	contested := make(map[rating.HourKey]metering.Set)
	for at, sets := range billed {
		if !shareSecond(sets) {
			continue
		}
		for session, set := range sets {
			key := rating.SessionKey{Tenant: at.tenant, Session: session}
			contested[rating.HourKey{SessionKey: key, Hour: at.hour}] = set
		}
	}
	return contested, nil
}

// within cuts seconds to an hour and to a period.
func within(hour, from, until int64, times [2]int64) (metering.Span, bool) {
	from, until = max(from, hour, times[0]), min(until, hour+metering.Hour, times[1])
	if from >= until {
		return metering.Span{}, false
	}
	return metering.Span{From: uint16(from - hour), To: uint16(until - hour)}, true
}

// without returns the seconds of a set that another does not have.
func without(set, other metering.Set) metering.Set {
	var rest metering.Set
	from := uint16(0)
	for _, span := range append(other.Clone(), metering.Span{From: uint16(metering.Hour)}) {
		if from < span.From {
			rest = set.Intersect(metering.Span{From: from, To: span.From}, rest)
		}
		from = span.To
	}
	return rest
}

// shareSecond reports whether two of the sets have a second in common.
func shareSecond(sets map[string]metering.Set) bool {
	var all metering.Set
	var seconds int64
	for _, set := range sets {
		seconds += set.Len()
		for _, span := range set {
			all.Add(span, nil)
		}
	}
	return all.Len() < seconds
}

// sharedDevices adds the leases of which two sessions held one device in a contested second, by the
// archived events that were not refused.
func (s *Store) sharedDevices(ctx context.Context, places map[rating.SessionKey]place,
	contested map[rating.HourKey]metering.Set, times [2]int64, leases map[place]bool,
) error {
	if len(contested) == 0 {
		return nil
	}
	sessions, tenants := make(map[rating.SessionKey]bool), make(map[string]bool)
	for key := range contested {
		sessions[key.SessionKey], tenants[key.Tenant] = true, true
	}
	names := make([]string, 0, len(tenants))
	for _, name := range slices.Sorted(maps.Keys(tenants)) {
		names = append(names, quote(name))
	}
	held := make(map[holding]map[string]metering.Set)
	parser := metering.NewParser()
	for _, list := range lists(sessionTuples(sessions)) {
		query := strings.NewReplacer(
			"{topic}", quote(schemas.TopicUsage), "{tenants}", strings.Join(names, ","),
			"{since}", quoteTime(time.Unix(times[0]-metering.Hour, 0)), "{sessions}", list,
		).Replace(`
			SELECT tenant, value FROM usage_events
			WHERE topic = {topic}
				AND partition IN (SELECT DISTINCT partition FROM sessions WHERE tenant IN ({tenants}))
				AND tenant IN ({tenants}) AND record_time >= {since}
				AND position(value, '"devices"') > 0
				AND (tenant, JSONExtractString(value, 'data', 'session')) IN ({sessions})
				AND (partition, offset) NOT IN (SELECT partition, offset FROM dead_letters
					WHERE topic = {topic} AND key IN ({tenants}))`)
		err := s.each(ctx, query, func(row scanner) error {
			var tenant, value string
			if err := row.Scan(&tenant, &value); err != nil {
				return err
			}
			var e metering.Event
			if parser.Parse([]byte(value), &e) == nil && e.Kind == metering.Held &&
				e.Problem() == nil {
				hold(&e, []byte(value), tenant, places, contested, held)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("look up devices: %w", err)
		}
	}
	for at, sets := range held {
		if shareSecond(sets) {
			leases[place{tenant: at.tenant, lease: at.lease}] = true
		}
	}
	return nil
}

// holding is an hour of a device.
type holding struct {
	place
	device string
	hour   int64
}

// hold adds the contested seconds of an event to what each session held of its devices.
func hold(e *metering.Event, value []byte, tenant string, places map[rating.SessionKey]place,
	contested map[rating.HourKey]metering.Set, held map[holding]map[string]metering.Set,
) {
	var more struct {
		Data struct {
			Devices []string `json:"devices"`
		} `json:"data"`
	}
	if json.Unmarshal(value, &more) != nil {
		return // devices are not billed, so nobody checked them
	}
	key := rating.SessionKey{Tenant: tenant, Session: strings.Clone(e.Session)}
	from, until := e.Window()
	for hour := metering.HourOf(from); hour < until; hour += metering.Hour {
		seconds := contested[rating.HourKey{SessionKey: key, Hour: hour}]
		span := metering.Span{
			From: uint16(max(from-hour, 0)), To: uint16(min(until-hour, metering.Hour)),
		}
		for _, span := range seconds.Intersect(span, nil) {
			for _, device := range more.Data.Devices {
				at := holding{places[key], device, hour}
				if held[at] == nil {
					held[at] = make(map[string]metering.Set)
				}
				set := held[at][key.Session]
				set.Add(span, nil)
				held[at][key.Session] = set
			}
		}
	}
}
