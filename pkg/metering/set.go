package metering

import "slices"

// Hour is the number of seconds that one row holds.
const Hour int64 = 3600

// HourOf is the start of the UTC hour that a second lies in.
func HourOf(second int64) int64 { return second - second%Hour }

// Span is the half-open run [From, To) of seconds of one hour, 0 <= From < To <= 3600.
type Span struct{ From, To uint16 }

// Len is the number of seconds in the span.
func (s Span) Len() int64 { return int64(s.To) - int64(s.From) }

// Set is a set of seconds of one hour: spans in ascending order that neither touch nor overlap. Its
// zero value is empty. Sets only grow.
type Set []Span

// Len is the number of seconds in the set.
func (s Set) Len() int64 {
	var n int64
	for _, span := range s {
		n += span.Len()
	}
	return n
}

// Add puts a span into the set and appends the parts of it that were not there to fresh.
func (s *Set) Add(span Span, fresh []Span) []Span {
	spans := *s
	last := len(spans) - 1
	if last < 0 || span.From > spans[last].To {
		*s = append(spans, span)
		return append(fresh, span)
	}
	if span.From >= spans[last].From { // it continues the last span, as most windows do
		if span.To > spans[last].To {
			fresh = append(fresh, Span{max(span.From, spans[last].To), span.To})
			spans[last].To = span.To
		}
		return fresh
	}
	return s.merge(span, fresh)
}

// merge is Add for a span that begins before the last one.
func (s *Set) merge(span Span, fresh []Span) []Span {
	spans := *s
	first := 0
	for spans[first].To < span.From {
		first++
	}
	end, at := first, span.From
	for end < len(spans) && spans[end].From <= span.To {
		if at < spans[end].From {
			fresh = append(fresh, Span{at, spans[end].From})
		}
		at = max(at, spans[end].To)
		end++
	}
	if at < span.To {
		fresh = append(fresh, Span{at, span.To})
	}
	if first < end {
		span.From = min(span.From, spans[first].From)
		span.To = max(span.To, spans[end-1].To)
	}
	*s = slices.Replace(spans, first, end, span)
	return fresh
}

// Intersect appends the parts of span that are in the set to common.
func (s Set) Intersect(span Span, common []Span) []Span {
	for _, have := range s {
		if from, to := max(have.From, span.From), min(have.To, span.To); from < to {
			common = append(common, Span{from, to})
		}
	}
	return common
}

// Valid reports whether the set is in its canonical form, as sets that come from outside must be.
func (s Set) Valid() bool {
	for i, span := range s {
		if span.From >= span.To || int64(span.To) > Hour || i > 0 && span.From <= s[i-1].To {
			return false
		}
	}
	return true
}

// Clone returns a copy that shares nothing with s.
func (s Set) Clone() Set { return slices.Clone(s) }
