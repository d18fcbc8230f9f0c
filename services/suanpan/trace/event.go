package trace

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/suanpan/suanpan/pkg/metering"
)

// idBytes is how much of a window's hash makes its id.
const idBytes = 16

// text is what all events of a session have in common: head, id, time, facts, start, end, tail.
type text struct{ head, facts, tail []byte }

func newText(source string, s *Session) *text {
	t := new(text)
	t.head = append(t.head, `{"specversion":"1.0","type":"suanpan.usage.held.v1","source":`...)
	t.head = appendQuoted(t.head, source)
	t.head = append(t.head, `,"id":"`...)

	member := func(name, value string) {
		t.facts = append(append(append(t.facts, '"'), name...), `":`...)
		t.facts = append(appendQuoted(t.facts, value), ',')
	}
	t.facts = append(t.facts, `","data":{`...)
	member("tenant", s.Tenant)
	member("project", s.Project)
	member("lease", s.Name)
	member("session", s.Name)
	member("session_start", string(appendTime(nil, s.Start)))
	member("purchase", string(s.Purchase))
	member("region", Region)
	t.facts = append(t.facts, `"start":"`...)

	t.tail = append(t.tail, `","held":{`...)
	for i, a := range s.Held {
		if i > 0 {
			t.tail = append(t.tail, ',')
		}
		t.tail = append(appendQuoted(t.tail, a.SKU), ':', '"')
		t.tail = append(appendMilli(t.tail, a.Milli), '"')
	}
	t.tail = append(t.tail, `}}}`...)
	return t
}

// AppendJSON appends the window's usage event in JSON, without a line end. Equal windows make equal
// events, their ids included.
func (w *Window) AppendJSON(dst []byte) []byte {
	dst = append(dst, w.text.head...)
	dst = w.appendID(dst)
	dst = append(dst, `","time":"`...)
	at := len(dst)
	dst = appendTime(dst, w.End)
	end := len(dst)
	dst = append(dst, w.text.facts...)
	dst = appendTime(dst, w.Start)
	dst = append(dst, `","end":"`...)
	dst = append(dst, dst[at:end]...)
	return append(dst, w.text.tail...)
}

// appendID appends the id: a hash of the session and the window, so that whoever reports the window
// again, reports the same event.
func (w *Window) appendID(dst []byte) []byte {
	at := len(dst)
	dst = append(dst, w.Session.Name...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(w.Start))
	dst = binary.BigEndian.AppendUint64(dst, uint64(w.End))
	hash := sha256.Sum256(dst[at:])
	return hex.AppendEncode(dst[:at], hash[:idBytes])
}

func appendTime(dst []byte, second int64) []byte {
	return time.Unix(second, 0).UTC().AppendFormat(dst, time.RFC3339)
}

// appendQuoted appends a JSON string. Names were found to be UTF-8 when they were read.
func appendQuoted(dst []byte, s string) []byte {
	dst, err := jsontext.AppendQuote(dst, s)
	if err != nil {
		panic("BUG: a name that is not UTF-8: " + err.Error())
	}
	return dst
}

// appendMilli appends thousandths as a decimal, without zeros at its end.
func appendMilli(dst []byte, milli int64) []byte {
	dst = strconv.AppendInt(dst, milli/1000, 10)
	fraction := milli % 1000
	if fraction == 0 {
		return dst
	}
	dst = append(dst, '.', byte('0'+fraction/100), byte('0'+fraction/10%10), byte('0'+fraction%10))
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// held lists the amounts that are above zero, all in thousandths, in ascending order of SKUs.
func held(cpu, gpu, memory int64) []metering.Amount {
	var amounts []metering.Amount
	for _, a := range []metering.Amount{
		{SKU: "cpu.core", Milli: cpu},
		{SKU: "gpu.openb", Milli: gpu},
		{SKU: "memory.gib", Milli: memory},
	} {
		if a.Milli > 0 {
			amounts = append(amounts, a)
		}
	}
	return amounts
}
