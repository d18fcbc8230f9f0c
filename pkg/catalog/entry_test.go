package catalog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/suanpan/suanpan/pkg/metering"
)

// entry parses one document as it was appended at a time.
func entry(t *testing.T, appended, batch, document string) Entry {
	t.Helper()
	documents, err := Parse("log", []byte(document))
	if err != nil || len(documents) != 1 {
		t.Fatalf("parse %s: %d documents, %v", document, len(documents), err)
	}
	at, err := metering.ParseInstant(appended)
	if err != nil {
		t.Fatal(err)
	}
	return Entry{Document: documents[0], Appended: at.Second(), Batch: batch}
}

// says reports whether an error contains a text, or is nil where that is "".
func says(err error, want string) bool {
	if err == nil || want == "" {
		return err == nil && want == ""
	}
	return strings.Contains(err.Error(), want)
}

const bookThatNames = `{kind: PriceBook, name: public, currency: CNY, timezone: UTC,
  effective_from: "2026-01-01T00:00:00Z",
  bands: [{name: holiday, when: [{calendar: cn}]}],
  prices: [{sku: gpu, per: hour, price: "30", minimum: 60s,
    bands: {holiday: {multiplier: "0.5"}}}]}`

func TestAddEntry_calendarOfTheFutureOnlyOnceABookNamesIt(t *testing.T) {
	f := func(from, want string) {
		t.Helper()
		c := Empty()
		if err := c.AddEntry(entry(t, "2026-01-05T00:00:00Z", "1", bookThatNames)); err != nil {
			t.Fatal(err)
		}
		err := c.AddEntry(entry(t, "2026-01-06T00:00:00Z", "2",
			`{kind: Calendar, name: cn, days: ["2026-01-05"], effective_from: "`+from+`"}`))
		if !says(err, want) {
			t.Errorf("calendar from %s: %v, want %q", from, err, want)
		}
	}
	f("2026-01-05T00:00:00Z", "a price book names it already")
	f("2026-01-06T00:01:00Z", "") // nothing is rated so far ahead
}

func TestAddEntry_changesStartAfterWhatMayBeRated(t *testing.T) {
	f := func(appended, batch, from, want string) {
		t.Helper()
		c := Empty()
		if err := c.AddEntry(entry(t, "2026-01-05T00:00:00Z", "1", bookThatNames)); err != nil {
			t.Fatal(err)
		}
		changed := strings.Replace(strings.Replace(bookThatNames, `"30"`, `"31"`, 1),
			"2026-01-01T00:00:00Z", from, 1)
		err := c.AddEntry(entry(t, appended, batch, changed))
		if !says(err, want) {
			t.Errorf("version from %s, appended at %s: %v, want %q", from, appended, err, want)
		}
	}
	f("2026-01-05T00:00:00Z", "1", "2025-12-01T00:00:00Z", "") // of the same apply
	f("2026-01-05T00:00:00Z", "2", "2025-12-01T00:00:00Z", "before the earliest instant")
	f("2026-02-01T00:00:00Z", "2", "2026-02-01T00:00:59Z", "before the earliest instant")
	f("2026-02-01T00:00:00Z", "2", "2026-02-01T00:01:00Z", "")
	f("2026-02-01T00:00:00Z", "2", "2026-01-01T00:00:00Z", "before the earliest instant")
	f("2026-01-05T00:00:00Z", "1", "2026-01-01T00:00:00Z", "a version is immutable")
}

func TestAddEntry_onlyFirstVersionsOfSomeKindsStartInThePast(t *testing.T) {
	f := func(document, want string) {
		t.Helper()
		c := Empty()
		if err := c.AddEntry(entry(t, "2026-01-05T00:00:00Z", "1", bookThatNames)); err != nil {
			t.Fatal(err)
		}
		dated := func(from string) string {
			return strings.Replace(document, "{", `{effective_from: "`+from+`", `, 1)
		}
		err := c.AddEntry(entry(t, "2026-02-01T00:00:00Z", "2", dated("2026-01-01T00:00:00Z")))
		if !says(err, want) {
			t.Errorf("%s in the past: %v, want %q", document, err, want)
		}
		if strings.Contains(document, "Grant") {
			return // has no further versions
		}
		err = c.AddEntry(entry(t, "2026-02-01T00:00:00Z", "3", dated("2026-01-31T23:59:59Z")))
		if !says(err, "before the earliest instant") {
			t.Errorf("the next version of %s in the past: %v", document, err)
		}
		// Nothing is rated by these kinds, so they need not wait for the book's minimum.
		err = c.AddEntry(entry(t, "2026-02-01T00:00:00Z", "4", dated("2026-02-01T00:00:00Z")))
		if err != nil {
			t.Errorf("the next version of %s at once: %v", document, err)
		}
	}
	const late = "before the earliest instant"
	f(`{kind: Seller, name: x, legal_name: X, timezone: UTC}`, "")
	f(`{kind: TaxRule, name: x, category: S, rate: "6"}`, "")
	f(`{kind: Grant, name: x, tenant: t, amount: "1", currency: CNY, source: paid}`, late)
	f(`{kind: Budget, name: x, tenant: t, period: day, amount: "1"}`, late)
	f(`{kind: Policy, name: x, type: idle_gpu}`, late)
}

// TestAddEntry_manyBudgets: ten thousand are taken in without looking through all for each.
func TestAddEntry_manyBudgets(t *testing.T) {
	const count = 10_000
	c := Empty()
	for i := range count {
		e := entry(t, "2026-01-01T00:00:00Z", "1", fmt.Sprintf(
			`{kind: Budget, name: b%d, tenant: t, period: day, amount: "1"}`, i))
		e.Replay = true
		if err := c.AddEntry(e); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(c.Budgets(second(t, "2026-01-01T00:00:00Z"))); got != count {
		t.Errorf("%d budgets", got)
	}
}
