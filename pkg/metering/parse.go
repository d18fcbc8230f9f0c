package metering

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Parser reads events. It keeps its buffers between calls; it may not be used concurrently.
type Parser struct {
	scanner
	event   *Event
	problem string // the first breach of the schema
}

// NewParser returns a parser.
func NewParser() *Parser { return new(Parser) }

// field tells how one member of an object is read; required ones must be there and not empty.
type field struct {
	name     string
	required bool
	read     func(p *Parser, name string)
}

// schema is what the data of one kind of event may have. Unknown fields are ignored.
type schema struct {
	kind   Kind
	fields []field
}

// Parse reads one event into e, whose slices are reused. The strings of e are parts of data, which
// must not change as long as they are used. Where it fails, e.ID is still the event's id if that
// could be read.
func (p *Parser) Parse(data []byte, e *Event) *Rejection {
	*e = Event{
		Amounts: e.Amounts[:0],
		Facts:   Facts{Labels: e.Labels[:0]},
	}
	if len(data) > MaxEventBytes {
		return Reject(InvalidEvent, "the event has %d bytes, more than %d", len(data), MaxEventBytes)
	}
	p.reset(data)
	p.event, p.problem = e, ""
	if p.peek() != '{' {
		return malformed(data)
	}
	typ, known := p.readEnvelope()
	switch {
	case p.broken || p.peek() != 0 || p.at < len(data):
		return malformed(data)
	case !known:
		return Reject(UnknownType, "type %q is not one that Suanpan knows", clip(typ))
	case p.problem != "":
		return Reject(InvalidEvent, "%s", p.problem)
	}
	p.finish()
	return nil
}

// malformed says why data is not one JSON object, in jsontext's words.
func malformed(data []byte) *Rejection {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(data))
	value, err := decoder.ReadValue()
	switch {
	case errors.Is(err, io.EOF):
		return Reject(InvalidJSON, "the event is empty")
	case err != nil:
		return Reject(InvalidJSON, "%s", strings.TrimPrefix(err.Error(), "jsontext: "))
	case value.Kind() != '{':
		return Reject(InvalidJSON, "an event is a JSON object")
	}
	return Reject(InvalidJSON, "something follows the JSON object")
}

// readEnvelope reads the CloudEvents attributes. data is read at once where its type is known by
// then, as all who write events by hand or by library order it, and at the end otherwise.
func (p *Parser) readEnvelope() (typ string, known bool) {
	var s *schema
	var seen, read bool
	var later int // where data begins that was not read at once
	var version string
	p.begin()
	for p.more('}') {
		name := p.name()
		switch name {
		case "specversion":
			version = p.text("", name)
		case "id":
			p.event.ID = p.text("", name)
		case "source":
			p.event.Source = p.text("", name)
		case "type":
			typ = p.text("", name)
			s = schemas[typ]
		case "time":
			if p.peek() == 'n' { // null is the same as absent
				p.skip()
			} else {
				p.instant("", name)
			}
		case "data":
			seen = true
			if read = s != nil; read {
				p.object(s)
			} else {
				p.peek()
				later = p.at
				p.skip()
			}
		default:
			p.skip()
		}
	}
	p.end()
	if s == nil || p.broken {
		return typ, s != nil
	}
	switch {
	case version != "1.0":
		p.fail(`specversion must be "1.0"`)
	case p.event.ID == "":
		p.fail("id is missing or empty")
	case p.event.Source == "":
		p.fail("source is missing or empty")
	case !seen:
		p.fail("data is missing")
	}
	if seen && !read {
		end := p.at
		p.at = later
		p.object(s)
		p.at = end
	}
	p.event.Kind = s.kind
	return typ, true
}

// object reads data by its schema.
func (p *Parser) object(s *schema) {
	p.event.Kind = s.kind
	if p.peek() != '{' {
		p.fail("data is not an object")
		p.skip()
		return
	}
	var got uint64
	p.begin()
	for p.more('}') {
		name := p.name()
		at := -1
		for i := range s.fields {
			if s.fields[i].name == name {
				at = i
				break
			}
		}
		switch {
		case at < 0:
			p.skip()
		case p.peek() == 'n': // null is the same as absent
			p.skip()
		default:
			s.fields[at].read(p, name)
			got |= 1 << at
		}
	}
	p.end()
	for i, f := range s.fields {
		if f.required && got&(1<<i) == 0 {
			p.fail("data.", f.name, " is missing")
		}
	}
}

// finish judges what needs more than one field.
func (p *Parser) finish() {
	e := p.event
	sortLabels(e.Labels)
	sortAmounts(e.Amounts)
	switch e.Kind {
	case Held, Void, Outage, Rerate, PeriodClose:
		e.windowProblem = e.checkWindow()
	case Consumed:
		if e.Purchase == "" {
			e.Purchase = OnDemand
		}
	case MarketPrice, Checkpoint, Interrupted, Queue:
	}
}

// fail notes a breach of the schema. Only the first is told.
func (p *Parser) fail(parts ...string) {
	if p.problem == "" {
		p.problem = strings.Join(parts, "")
	}
}
