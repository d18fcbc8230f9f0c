package metering

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// bitmap is an hour as 3600 booleans: slow, and too simple to be wrong.
type bitmap [Hour]bool

// add marks a span and returns the seconds that were not marked before, as maximal spans.
func (b *bitmap) add(span Span) []Span {
	var fresh bitmap
	for s := span.From; s < span.To; s++ {
		fresh[s] = !b[s]
		b[s] = true
	}
	return fresh.spans()
}

func (b *bitmap) spans() []Span {
	var spans []Span
	for s := range b {
		if !b[s] {
			continue
		}
		if n := len(spans); n > 0 && int(spans[n-1].To) == s {
			spans[n-1].To++
		} else {
			spans = append(spans, Span{uint16(s), uint16(s) + 1})
		}
	}
	return spans
}

// anySpan draws from a few seconds, where spans touch and overlap all the time, or from the hour.
func anySpan(limit uint16) *rapid.Generator[Span] {
	return rapid.Custom(func(t *rapid.T) Span {
		from := rapid.Uint16Range(0, limit-1).Draw(t, "from")
		return Span{from, rapid.Uint16Range(from+1, limit).Draw(t, "to")}
	})
}

func anySpans() *rapid.Generator[[]Span] {
	return rapid.OneOf(rapid.SliceOf(anySpan(24)), rapid.SliceOf(anySpan(uint16(Hour))))
}

// Property: a set that spans are added to is the union of the spans, in canonical form, and fresh
// is exactly what was new.
func TestSet_addIsUnion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var set Set
		var model bitmap
		for _, span := range anySpans().Draw(t, "spans") {
			want := model.add(span)
			kept := []Span{{7, 8}} // what fresh has already must stay
			fresh := set.Add(span, kept)
			if fresh[0] != kept[0] {
				t.Fatalf("Add(%v) changed what fresh had", span)
			}
			if d := cmp.Diff(want, nilIfEmpty(fresh[1:])); d != "" {
				t.Fatalf("Add(%v) fresh (-want +got):\n%s", span, d)
			}
			if !set.Valid() {
				t.Fatalf("Add(%v) left a set that is not canonical: %v", span, set)
			}
		}
		if d := cmp.Diff(model.spans(), nilIfEmpty(set)); d != "" {
			t.Fatalf("set (-want +got):\n%s", d)
		}
		var n int64
		for _, covered := range model {
			if covered {
				n++
			}
		}
		if set.Len() != n {
			t.Fatalf("Len() = %d, want %d", set.Len(), n)
		}
	})
}

func nilIfEmpty(spans []Span) []Span {
	if len(spans) == 0 {
		return nil
	}
	return spans
}

// Property: the order of additions, and repeats among them, do not change a set.
func TestSet_orderAndRepeatsDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spans := anySpans().Draw(t, "spans")
		again := append(slices.Clone(spans), spans[:len(spans)/2]...)
		again = rapid.Permutation(again).Draw(t, "again")
		var once, twice Set
		var total, totalAgain int64
		for _, span := range spans {
			total += Set(once.Add(span, nil)).Len()
		}
		for _, span := range again {
			totalAgain += Set(twice.Add(span, nil)).Len()
		}
		if !slices.Equal(once, twice) {
			t.Fatalf("sets differ: %v and %v", once, twice)
		}
		if total != totalAgain || total != once.Len() {
			t.Fatalf("fresh seconds %d and %d, the set has %d", total, totalAgain, once.Len())
		}
	})
}

// Property: an intersection has exactly the seconds that are in both.
func TestSet_intersect(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var set Set
		var model, want bitmap
		for _, span := range anySpans().Draw(t, "spans") {
			set.Add(span, nil)
			model.add(span)
		}
		before := slices.Clone(set)
		span := rapid.OneOf(anySpan(24), anySpan(uint16(Hour))).Draw(t, "span")
		for s := span.From; s < span.To; s++ {
			want[s] = model[s]
		}
		got := set.Intersect(span, nil)
		if d := cmp.Diff(want.spans(), nilIfEmpty(got)); d != "" {
			t.Fatalf("Intersect(%v) (-want +got):\n%s", span, d)
		}
		if !Set(got).Valid() || !slices.Equal(before, set) {
			t.Fatalf("Intersect(%v) = %v of %v, now %v", span, got, before, set)
		}
	})
}

func TestSet_add(t *testing.T) {
	f := func(spans []Span, add Span, wantSet Set, wantFresh []Span) {
		t.Helper()
		set := Set(slices.Clone(spans))
		fresh := set.Add(add, nil)
		if !slices.Equal(set, wantSet) || !slices.Equal(fresh, wantFresh) {
			t.Errorf("%v + %v = %v, fresh %v; want %v, %v", spans, add, set, fresh, wantSet, wantFresh)
		}
	}
	f(nil, Span{0, 3600}, Set{{0, 3600}}, []Span{{0, 3600}})
	f([]Span{{0, 60}}, Span{60, 120}, Set{{0, 120}}, []Span{{60, 120}})
	f([]Span{{0, 60}}, Span{61, 120}, Set{{0, 60}, {61, 120}}, []Span{{61, 120}})
	f([]Span{{0, 60}}, Span{0, 60}, Set{{0, 60}}, nil)
	f([]Span{{0, 60}}, Span{30, 90}, Set{{0, 90}}, []Span{{60, 90}})
	f([]Span{{60, 120}}, Span{0, 60}, Set{{0, 120}}, []Span{{0, 60}})
	f([]Span{{60, 120}}, Span{0, 59}, Set{{0, 59}, {60, 120}}, []Span{{0, 59}})
	f([]Span{{10, 20}, {30, 40}, {50, 60}}, Span{20, 50}, Set{{10, 60}}, []Span{{20, 30}, {40, 50}})
	f([]Span{{10, 20}, {30, 40}}, Span{12, 18}, Set{{10, 20}, {30, 40}}, nil)
}

func TestSet_valid(t *testing.T) {
	f := func(want bool, set Set) {
		t.Helper()
		if set.Valid() != want {
			t.Errorf("%v.Valid() = %v", set, !want)
		}
	}
	f(true, nil)
	f(true, Set{{0, 3600}})
	f(true, Set{{0, 1}, {2, 3}})
	f(false, Set{{0, 3601}})
	f(false, Set{{5, 5}})
	f(false, Set{{6, 5}})
	f(false, Set{{0, 1}, {1, 2}}) // they touch
	f(false, Set{{0, 2}, {1, 3}})
	f(false, Set{{4, 5}, {0, 1}})
}

func TestHourOf(t *testing.T) {
	for second, want := range map[int64]int64{
		0: 0, 3599: 0, 3600: 3600, 1_767_578_461: 1_767_578_400,
	} {
		if got := HourOf(second); got != want {
			t.Errorf("HourOf(%d) = %d, want %d", second, got, want)
		}
	}
}

// BenchmarkSetAdd is an hour of one-minute windows in order, the second half of them twice.
func BenchmarkSetAdd(b *testing.B) {
	b.ReportAllocs()
	set, fresh := make(Set, 0, 8), make([]Span, 0, 8)
	for b.Loop() {
		set = set[:0]
		for m := uint16(0); m < 60; m++ {
			fresh = set.Add(Span{m * 60, m*60 + 60}, fresh[:0])
			if m >= 30 {
				fresh = set.Add(Span{m * 60, m*60 + 60}, fresh[:0])
			}
		}
	}
	if set.Len() != Hour {
		b.Fatalf("the hour has %d seconds", set.Len())
	}
}
