package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"regexp"
	"strings"
	"time"
)

// kind is what an event is about, as far as a bill cares.
type kind int

const (
	kindInvalid kind = iota
	kindHeld
	kindConsumed
	kindVoid
	kindMarket
	kindClose
	kindOther
)

var kinds = map[string]kind{
	"suanpan.usage.held.v1":        kindHeld,
	"suanpan.usage.consumed.v1":    kindConsumed,
	"suanpan.usage.void.v1":        kindVoid,
	"suanpan.market.price.v1":      kindMarket,
	"suanpan.outage.v1":            kindOther,
	"suanpan.checkpoint.v1":        kindOther,
	"suanpan.lease.interrupted.v1": kindOther,
	"suanpan.queue.v1":             kindOther,
	"suanpan.rerate.v1":            kindOther,
	"suanpan.period.close.v1":      kindClose,
}

type event struct {
	kind                            kind
	reason                          string // why it is refused whatever the catalog says
	source, id                      string
	tenant, project, lease, session string
	purchase, region, node          string
	contract                        string
	sessionStart, start, end, at    time.Time
	resumed                         bool
	labels                          map[string]any
	amounts                         map[string]any
	sku, currency, per              string
	price                           any
}

// name is how the rejected list calls the event of a line.
func (e *event) name(line int) string {
	if e.id == "" {
		return fmt.Sprintf("line %d", line)
	}
	return e.id
}

// facts are what may not change within a session, as one text.
func (e *event) facts() string {
	labels, err := json.Marshal(e.labels)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	if len(e.labels) == 0 {
		labels = nil
	}
	return fmt.Sprintf("%q %q %q %q %q %d %t %s", e.project, e.lease, e.purchase, e.region, e.node,
		e.sessionStart.UnixNano(), e.resumed, labels)
}

// windowOK judges the window, unrounded.
func (e *event) windowOK() bool {
	switch e.kind {
	case kindHeld:
		if e.start.Before(e.sessionStart) {
			return false
		}
	case kindVoid:
	case kindClose:
		return e.end.After(e.start)
	default:
		return true
	}
	return e.end.After(e.start) && e.end.Sub(e.start) <= 86400*time.Second
}

// parseEvent reads a line as far as it can.
func parseEvent(line []byte) *event {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	var envelope map[string]any
	if err := decoder.Decode(&envelope); err != nil || envelope == nil {
		return &event{reason: "invalid_json"}
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return &event{reason: "invalid_json"}
	}
	e := &event{}
	e.id, _ = envelope["id"].(string)
	name, _ := envelope["type"].(string)
	if e.kind = kinds[name]; e.kind == kindInvalid {
		e.reason = "unknown_type"
		return e
	}
	f := &fields{m: envelope}
	e.source = f.must("source")
	f.must("id")
	if f.must("specversion") != "1.0" {
		f.bad = true
	}
	f.instant("time", true)
	data, ok := envelope["data"].(map[string]any)
	if !ok {
		f.bad = true
	}
	if f.m = data; !f.bad {
		e.read(f)
	}
	if f.bad {
		e.reason = "invalid_event"
	}
	return e
}

// read takes what its kind of event has.
func (e *event) read(f *fields) {
	switch e.kind {
	case kindHeld:
		e.tenant, e.project, e.lease = f.must("tenant"), f.must("project"), f.must("lease")
		e.session, e.purchase = f.must("session"), f.must("purchase")
		e.sessionStart = f.instant("session_start", false)
		e.start, e.end = f.instant("start", false), f.instant("end", false)
		e.node, e.region = f.may("node"), f.may("region")
		e.amounts, e.labels = f.amounts("held"), f.labels()
		e.resumed = f.flag("resumed")
		if !purchases[e.purchase] {
			f.bad = true
		}
	case kindConsumed:
		e.tenant, e.at = f.must("tenant"), f.instant("time", false)
		e.project = f.must("project")
		e.purchase, e.region = f.may("purchase"), f.may("region")
		e.amounts, e.labels = f.amounts("consumed"), f.labels()
		if e.purchase != "" && !purchases[e.purchase] {
			f.bad = true
		}
	case kindVoid:
		e.tenant, e.session = f.must("tenant"), f.must("session")
		e.start, e.end = f.instant("start", false), f.instant("end", false)
		f.must("reason")
		f.must("by")
	case kindMarket:
		e.sku, e.region, e.at = f.must("sku"), f.must("region"), f.instant("time", false)
		e.currency, e.per = f.may("currency"), f.may("per")
		if e.price = f.m["price"]; e.price == nil {
			f.bad = true
		}
	case kindClose:
		e.tenant, e.contract = f.must("tenant"), f.may("contract")
		e.start, e.end = f.instant("from", false), f.instant("until", false)
	case kindOther, kindInvalid:
	}
}

var purchases = map[string]bool{
	"on_demand": true, "reserved": true, "spot": true, "per_task": true,
}

// fields reads an object and remembers whether anything was wrong.
type fields struct {
	m   map[string]any
	bad bool
}

// must reads a text that is there and not empty.
func (f *fields) must(key string) string {
	s := f.may(key)
	if s == "" {
		f.bad = true
	}
	return s
}

// may reads a text; absent and null are empty.
func (f *fields) may(key string) string {
	s, ok := f.m[key].(string)
	if !ok && f.m[key] != nil || len(s) > 256 {
		f.bad = true
	}
	return s
}

func (f *fields) flag(key string) bool {
	b, ok := f.m[key].(bool)
	if !ok && f.m[key] != nil {
		f.bad = true
	}
	return b
}

// amounts reads a map that has something in it; it does not judge the amounts.
func (f *fields) amounts(key string) map[string]any {
	m, _ := f.m[key].(map[string]any)
	if len(m) == 0 || len(m) > 64 || m[""] != nil {
		f.bad = true
	}
	return m
}

func (f *fields) labels() map[string]any {
	m, ok := f.m["labels"].(map[string]any)
	if !ok && f.m["labels"] != nil {
		f.bad = true
	}
	for _, value := range m {
		if _, ok := value.(string); !ok {
			f.bad = true
		}
	}
	return m
}

var rfc3339 = regexp.MustCompile(
	`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// instant reads a time.
func (f *fields) instant(key string, optional bool) time.Time {
	if optional && f.m[key] == nil {
		return time.Time{}
	}
	s := f.must(key)
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || !rfc3339.MatchString(s) || t.Unix() < 0 || t.UTC().Year() > 2099 {
		f.bad = true
	}
	return t
}

var plainDecimal = regexp.MustCompile(`^0*(\d{1,15})(?:\.(\d+))?$`)

// decimal reads an amount, a text or a JSON number by its text: above 0, with so many decimals.
func decimal(value any, places int) (*big.Rat, bool) {
	var s string
	switch v := value.(type) {
	case string:
		s = v
	case json.Number:
		s = v.String()
	default:
		return nil, false
	}
	m := plainDecimal.FindStringSubmatch(s)
	if m == nil || len(strings.TrimRight(m[2], "0")) > places {
		return nil, false
	}
	r := rat(s)
	return r, r.Sign() > 0
}

func decimals(values map[string]any, places int) (map[string]*big.Rat, bool) {
	out := map[string]*big.Rat{}
	for sku, value := range values {
		r, ok := decimal(value, places)
		if !ok {
			return nil, false
		}
		out[sku] = r
	}
	return out, true
}
