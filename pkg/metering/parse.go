package metering

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
)

// Parser reads events. It keeps its buffers between calls; it may not be used concurrently.
type Parser struct {
	input   *bytes.Buffer
	decoder *jsontext.Decoder
	event   *Event
	problem string // the first breach of the schema
	broken  error  // the JSON itself is malformed
}

// NewParser returns a parser.
func NewParser() *Parser {
	input := new(bytes.Buffer)
	return &Parser{input: input, decoder: jsontext.NewDecoder(input)}
}

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
	*p.input = *bytes.NewBuffer(data)
	p.decoder.Reset(p.input)
	p.event, p.problem, p.broken = e, "", nil
	if p.decoder.PeekKind() != '{' {
		_, err := p.decoder.ReadValue()
		switch {
		case errors.Is(err, io.EOF):
			return Reject(InvalidJSON, "the event is empty")
		case err != nil:
			return Reject(InvalidJSON, "%s", jsonError(err))
		}
		return Reject(InvalidJSON, "an event is a JSON object")
	}
	typ, known := p.readEnvelope()
	if p.broken == nil {
		if _, err := p.decoder.ReadToken(); err != io.EOF {
			return Reject(InvalidJSON, "something follows the JSON object")
		}
	}
	switch {
	case p.broken != nil:
		return Reject(InvalidJSON, "%s", jsonError(p.broken))
	case !known:
		return Reject(UnknownType, "type %q is not one that Suanpan knows", clip(typ))
	case p.problem != "":
		return Reject(InvalidEvent, "%s", p.problem)
	}
	p.finish()
	return nil
}

func jsonError(err error) string { return strings.TrimPrefix(err.Error(), "jsontext: ") }

// readEnvelope reads the CloudEvents attributes. data is read at once where its type is known by
// then, as all who write events by hand or by library order it, and at the end otherwise.
func (p *Parser) readEnvelope() (typ string, known bool) {
	var s *schema
	var later jsontext.Value
	var seen, read bool
	var version string
	p.begin()
	for p.more() {
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
			if p.decoder.PeekKind() == 'n' {
				p.skip()
			} else {
				p.instant("", name)
			}
		case "data":
			seen = true
			if read = s != nil; read {
				p.object(s)
			} else {
				later = append(later, p.value()...)
			}
		default:
			p.skip()
		}
	}
	p.end()
	if s == nil || p.broken != nil {
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
		outer := p.decoder
		p.decoder = jsontext.NewDecoder(bytes.NewBuffer(later))
		p.object(s)
		p.decoder = outer
	}
	p.event.Kind = s.kind
	return typ, true
}

// object reads data by its schema.
func (p *Parser) object(s *schema) {
	p.event.Kind = s.kind
	if p.broken == nil && p.decoder.PeekKind() != '{' {
		p.fail("data is not an object")
		p.skip()
		return
	}
	var got uint64
	p.begin()
	for p.more() {
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
		case p.decoder.PeekKind() == 'n': // null is the same as absent
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
	}
}

// fail notes a breach of the schema. Only the first is told.
func (p *Parser) fail(parts ...string) {
	if p.problem == "" {
		p.problem = strings.Join(parts, "")
	}
}

func (p *Parser) begin() { p.token() }
func (p *Parser) end()   { p.token() }

func (p *Parser) token() {
	if p.broken != nil {
		return
	}
	if _, err := p.decoder.ReadToken(); err != nil {
		p.broken = err
	}
}

// more reports whether another member follows. Malformed JSON ends every object.
func (p *Parser) more() bool {
	if p.broken != nil {
		return false
	}
	kind := p.decoder.PeekKind()
	if kind == 0 {
		_, p.broken = p.decoder.ReadToken()
	}
	return kind != '}' && kind != 0
}

func (p *Parser) value() jsontext.Value {
	if p.broken != nil {
		return nil
	}
	v, err := p.decoder.ReadValue()
	if err != nil {
		p.broken = err
	}
	return v
}

func (p *Parser) skip() {
	if p.broken != nil {
		return
	}
	if err := p.decoder.SkipValue(); err != nil {
		p.broken = err
	}
}

func (p *Parser) name() string { return unquote(p.value()) }

// unquote returns what a JSON string says. It is a part of v where that has no escapes.
func unquote(v jsontext.Value) string {
	if len(v) < 2 || v[0] != '"' {
		return ""
	}
	if bytes.IndexByte(v, '\\') < 0 {
		return unsafeString(v[1 : len(v)-1])
	}
	s, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		panic("BUG: unquote a valid JSON string: " + err.Error())
	}
	return string(s)
}

// unsafeString is v as a string without a copy: valid as long as the event's bytes do not change.
func unsafeString(v []byte) string { return unsafe.String(unsafe.SliceData(v), len(v)) }
