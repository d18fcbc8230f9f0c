package session

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/suanpan/suanpan/schemas"
)

// Window is a part of a session that is to be reported.
type Window struct {
	Session    *Session
	Start, End time.Time // by the session's clock
	// From and Until are the same instants by the monotonic clock.
	From, Until time.Duration
	Final       bool // the session ended with it
}

// Due returns the windows that are to be reported now, one a session, or several where more than a
// day is due. Windows end on the borders of the wall clock's windows, but for the last one of a
// session that ended, or of all where final is set, as before a stop. Where a session turns out to
// have ended when its last window did, that window is due again, to say so.
func (e *Engine) Due(final bool) []Window {
	var due []Window
	size := int64(e.config.Window)
	for _, s := range e.state.Open {
		until := s.Seen
		switch {
		case s.Ended:
			until = s.Finish
		case !final:
			until -= floorMod(until, size)
		}
		from := s.Covered
		if s.unclosed() {
			from = s.Last
		}
		for from < until {
			end := until
			if longest := from + int64(windowMost); end > longest {
				end = longest
				if border := end - floorMod(end, size); border > from {
					end = border
				}
			}
			due = append(due, Window{
				s, time.Unix(0, from).UTC(), time.Unix(0, end).UTC(),
				time.Duration(from - s.Zero), time.Duration(end - s.Zero), s.Ended && end == s.Finish,
			})
			from = end
		}
	}
	return due
}

// Commit notes that windows which Due returned are stored: the next ones begin after them.
func (e *Engine) Commit(windows []Window) {
	for i := range windows {
		w := &windows[i]
		s := w.Session
		s.Covered = max(s.Covered, w.End.UnixNano())
		s.Last, s.Closed = w.Start.UnixNano(), w.Final
	}
	e.retire()
}

// floorMod is a modulo b, 0 or more.
func floorMod(a, b int64) int64 { return ((a % b) + b) % b }

// event is a suanpan.usage.held.v1.
type event struct {
	SpecVersion string    `json:"specversion"`
	ID          string    `json:"id"`
	Source      string    `json:"source"`
	Type        string    `json:"type"`
	Time        string    `json:"time"`
	Data        eventData `json:"data"`
}

type eventData struct {
	Tenant       string            `json:"tenant"`
	Project      string            `json:"project"`
	Lease        string            `json:"lease"`
	Session      string            `json:"session"`
	SessionStart string            `json:"session_start"`
	Resumed      bool              `json:"resumed,omitempty"`
	Purchase     string            `json:"purchase"`
	Region       string            `json:"region,omitempty"`
	Node         string            `json:"node"`
	Devices      []string          `json:"devices,omitempty"`
	Start        string            `json:"start"`
	End          string            `json:"end"`
	Held         map[string]string `json:"held"`
	Final        bool              `json:"final"`
	Labels       map[string]string `json:"labels,omitempty"`
	Telemetry    json.RawMessage   `json:"telemetry,omitempty"`
}

// Event returns the window as the event that reports it. Its id follows from session and window, so
// that a repeat has the same one. telemetry is what the devices did, as JSON; nil: not known.
func (e *Engine) Event(w *Window, telemetry json.RawMessage) []byte {
	s := w.Session
	start, end := w.Start.Format(time.RFC3339Nano), w.End.Format(time.RFC3339Nano)
	name := s.ID + " " + start + " " + end
	if w.Final { // the window may have been sent before it was known to be the last
		name += " final"
	}
	sum := sha256.Sum256([]byte(name))
	data := eventData{
		Tenant: s.Tenant, Project: s.Project, Lease: s.Lease, Session: s.ID,
		SessionStart: s.Since().Format(time.RFC3339Nano), Resumed: s.Resumed,
		Purchase: s.Purchase, Region: s.Region, Node: e.config.Node, Start: start, End: end,
		Held: make(map[string]string, len(s.Held)), Final: w.Final, Labels: s.Labels,
		Telemetry: telemetry,
	}
	for _, d := range s.Devices {
		data.Devices = append(data.Devices, d.UUID)
	}
	for sku, milli := range s.Held {
		data.Held[sku] = FormatMilli(milli)
	}
	text, err := json.Marshal(event{
		"1.0", hex.EncodeToString(sum[:16]), "/nodes/" + e.config.Node, schemas.TypeHeld, end, data,
	})
	if err != nil {
		panic("BUG: an event does not marshal: " + err.Error())
	}
	return text
}

// FormatMilli returns thousandths as a decimal: 1500 as "1.5".
func FormatMilli(milli int64) string {
	text := strconv.FormatInt(milli, 10)
	if len(text) < 4 {
		text = strings.Repeat("0", 4-len(text)) + text
	}
	whole, fraction := text[:len(text)-3], strings.TrimRight(text[len(text)-3:], "0")
	if fraction == "" {
		return whole
	}
	return whole + "." + fraction
}

const keySeparator = "\x00"

func joinKey(source, key string) string { return source + keySeparator + key }

func splitKey(joined string) (source, key string) {
	source, key, _ = strings.Cut(joined, keySeparator)
	return source, key
}
