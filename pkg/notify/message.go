package notify

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Severity says how much a message matters.
type Severity string

// The severities, from the least.
const (
	Info     Severity = "info"
	Warning  Severity = "warning"
	Critical Severity = "critical"
)

// Status says what has become of the alert that a message is about.
type Status string

// The statuses of alerts that are told. That one was acknowledged is not.
const (
	Firing   Status = "firing"
	Resolved Status = "resolved"
)

// Limits of messages, in bytes of UTF-8 where not said otherwise. They keep a webhook's body
// under [MaxBodyBytes] without its data and query.
const (
	MaxTitleBytes   = 300
	MaxSummaryBytes = 3000
	MaxFigures      = 12 // their number
	MaxFigureBytes  = 200
	MaxQueryBytes   = 8000
	MaxDataBytes    = 64 << 10
	MaxLabels       = 20 // their number
	MaxLabelBytes   = 200
)

// Figure is one number that an alert rests on, as text with its unit.
type Figure struct {
	Name  string `json:"name"`  // in the message's language
	Value string `json:"value"` // such as "812.50 USD"
}

// Message is what a receiver is told, whatever its channel. Its JSON is for stores.
type Message struct {
	// ID is the same at every attempt and for every process that decides the same thing, so that
	// receivers recognize repeats. See [MessageID].
	ID string `json:"id"`
	// Alert names what fires and later resolves: its messages share it, and Type, Tenant, Severity
	// and Labels, by all of which Alertmanager knows it.
	Alert string `json:"alert"`
	// Type is words joined by dots, such as "budget.threshold_reached".
	Type string `json:"type"`
	// Time is when it was decided; Since is when the alert began to fire (the zero time: at Time).
	Time  time.Time `json:"time"`
	Since time.Time `json:"since,omitzero"`

	Tenant   string   `json:"tenant"`   // "" where it is about the platform
	Language string   `json:"language"` // BCP 47; "zh" and what begins with it is Chinese
	Severity Severity `json:"severity"`
	Status   Status   `json:"status"`

	Title    string   `json:"title"`   // one line
	Summary  string   `json:"summary"` // a few sentences
	Evidence []Figure `json:"evidence,omitempty"`
	Query    string   `json:"query,omitempty"` // the SQL that shows the evidence

	// Labels tell alerts of one type apart, such as budget and threshold. Names are like
	// [a-z][a-z0-9_]*.
	Labels map[string]string `json:"labels,omitempty"`
	// Data is a JSON object for programs, or nil.
	Data json.RawMessage `json:"data,omitempty"`
}

var (
	idPattern    = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)
	typePattern  = regexp.MustCompile(`^[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)*$`)
	labelPattern = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
)

// MessageID returns the id of what is decided once per these parts, such as ("budget", name,
// period, threshold): the same for the same parts, on any machine.
func MessageID(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	return "msg_" + base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:24])
}

// Validate reports all of a message that no channel could send.
func (m *Message) Validate() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !idPattern.MatchString(m.ID) {
		fail("id %q is not 1 to 128 of A-Z a-z 0-9 _ -", m.ID)
	}
	if !typePattern.MatchString(m.Type) || len(m.Type) > MaxLabelBytes {
		fail("type %q is not like budget.threshold_reached", m.Type)
	}
	if m.Time.IsZero() {
		fail("time is missing")
	}
	if m.Severity != Info && m.Severity != Warning && m.Severity != Critical {
		fail("severity %q is none of info, warning, critical", m.Severity)
	}
	if m.Status != Firing && m.Status != Resolved {
		fail("status %q is none of firing, resolved", m.Status)
	}
	if m.Alert == "" || m.Title == "" {
		fail("alert and title may not be empty")
	}
	m.validateTexts(fail)
	if len(m.Data) > 0 {
		var object map[string]any
		if err := json.Unmarshal(m.Data, &object); err != nil || object == nil {
			fail("data is not a JSON object")
		} else if len(m.Data) > MaxDataBytes {
			fail("data has %d bytes, more than %d", len(m.Data), MaxDataBytes)
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("check message: %w", errors.Join(errs...))
	}
	return nil
}

// Fit returns m within the limits of what people read: texts are cut, control characters are
// blanks, and figures, labels and data that are too many are left out. So a long name does not
// keep an alert from being told. Ids, type, severity, status and names of labels stay.
func (m Message) Fit() Message {
	m.Alert = clean(m.Alert, MaxLabelBytes, false)
	m.Tenant = clean(m.Tenant, MaxLabelBytes, false)
	m.Language = clean(m.Language, MaxLabelBytes, false)
	m.Title = clean(m.Title, MaxTitleBytes, false)
	m.Summary = clean(m.Summary, MaxSummaryBytes, true)
	m.Query = clean(m.Query, MaxQueryBytes, true)
	m.Evidence = slices.Clone(m.Evidence[:min(len(m.Evidence), MaxFigures)])
	for i, f := range m.Evidence {
		m.Evidence[i] = Figure{
			clean(f.Name, MaxFigureBytes, false), clean(f.Value, MaxFigureBytes, false),
		}
	}
	var labels map[string]string
	for _, name := range slices.Sorted(maps.Keys(m.Labels)) {
		if labels == nil {
			labels = make(map[string]string)
		}
		if len(labels) < MaxLabels {
			labels[name] = clean(m.Labels[name], MaxLabelBytes, false)
		}
	}
	m.Labels = labels
	if len(m.Data) > MaxDataBytes {
		m.Data = nil
	}
	return m
}

// validateTexts checks sizes and characters of everything that people read.
func (m *Message) validateTexts(fail func(format string, args ...any)) {
	text := func(name, s string, limit int, lines bool) {
		control := func(r rune) bool {
			if lines && (r == '\n' || r == '\t') {
				return false
			}
			return unicode.IsControl(r)
		}
		switch {
		case len(s) > limit:
			fail("%s has %d bytes, more than %d", name, len(s), limit)
		case !utf8.ValidString(s):
			fail("%s is not UTF-8", name)
		case strings.ContainsFunc(s, control):
			fail("%s has control characters", name)
		}
	}
	text("alert", m.Alert, MaxLabelBytes, false)
	text("tenant", m.Tenant, MaxLabelBytes, false)
	text("language", m.Language, MaxLabelBytes, false)
	text("title", m.Title, MaxTitleBytes, false)
	text("summary", m.Summary, MaxSummaryBytes, true)
	text("query", m.Query, MaxQueryBytes, true)
	if len(m.Evidence) > MaxFigures {
		fail("evidence has %d figures, more than %d", len(m.Evidence), MaxFigures)
	}
	for _, f := range m.Evidence {
		text("name of a figure", f.Name, MaxFigureBytes, false)
		text("figure "+f.Name, f.Value, MaxFigureBytes, false)
	}
	if len(m.Labels) > MaxLabels {
		fail("there are %d labels, more than %d", len(m.Labels), MaxLabels)
	}
	for name, value := range m.Labels {
		if !labelPattern.MatchString(name) || len(name) > MaxLabelBytes {
			fail("name of a label %q is not like [a-z][a-z0-9_]*", name)
		}
		text("label "+name, value, MaxLabelBytes, false)
	}
}

// since is when the alert began to fire.
func (m *Message) since() time.Time {
	if m.Since.IsZero() {
		return m.Time
	}
	return m.Since
}

// chinese reports whether a language is Chinese; every other one gets English.
func chinese(language string) bool {
	return strings.HasPrefix(strings.ToLower(language), "zh")
}
