package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRateFiles_namesWhatWasRejected names an event by its id, and by its line where it has none.
func TestRateFiles_namesWhatWasRejected(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.yaml")
	text := "{kind: PriceBook, name: p, currency: USD, timezone: UTC, prices: []}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	events := `{"id":"broken"` + "\n\n" + `{"id":"odd","type":"suanpan.odd.v1"}` + "\n" +
		`{"type":"suanpan.odd.v1"}` + "\n" + `{"id":"two"} {}`
	var out, rejected bytes.Buffer
	if err := rateFiles(path, "-", true, strings.NewReader(events), &out, &rejected); err != nil {
		t.Fatal(err)
	}
	const want = `rejected line 1: invalid_json
rejected odd: unknown_type
rejected line 4: unknown_type
rejected line 5: invalid_json
`
	if rejected.String() != want {
		t.Errorf("rejected:\n%swant:\n%s", &rejected, want)
	}
}
