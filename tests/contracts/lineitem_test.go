package contracts

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/rating"
)

// TestLineItems_fitTheirSchema rates usage, spot and a void, and validates what comes of it.
func TestLineItems_fitTheirSchema(t *testing.T) {
	schema := compiled(t)["lineitem.v1.json"]
	data, err := os.ReadFile("../../deployments/example/catalog.yaml")
	if err != nil {
		t.Fatal(err)
	}
	documents, err := catalog.Parse("catalog.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	prices, err := catalog.New(documents)
	if err != nil {
		t.Fatal(err)
	}
	offline := rating.NewOffline(prices)
	parser := metering.NewParser()
	for _, text := range []string{
		`{"specversion":"1.0","type":"suanpan.usage.held.v1","source":"/s","id":"1","data":{"tenant":` +
			`"tenant-00","project":"p","lease":"l","session":"s","session_start":"2026-01-05T02:00:00Z",` +
			`"purchase":"on_demand","node":"n","start":"2026-01-05T02:00:00Z","end":` +
			`"2026-01-05T05:00:02Z","held":{"gpu.openb":"0.333","cpu.core":"7"},"labels":{"a":"b"}}}`,
		`{"specversion":"1.0","type":"suanpan.usage.held.v1","source":"/s","id":"2","data":{"tenant":` +
			`"tenant-00","project":"p","lease":"m","session":"m","session_start":"2026-01-05T02:00:00Z",` +
			`"purchase":"spot","region":"openb","start":"2026-01-05T02:00:00Z","end":` +
			`"2026-01-05T02:00:07Z","held":{"gpu.openb":"0.007"}}}`,
		`{"specversion":"1.0","type":"suanpan.usage.void.v1","source":"/s","id":"3","data":{"tenant":` +
			`"tenant-00","session":"s","start":"2026-01-05T02:30:00Z","end":"2026-01-05T02:30:07Z",` +
			`"reason":"r","by":"b"}}`,
	} {
		var e metering.Event
		if why := parser.Parse([]byte(text), &e); why != nil {
			t.Fatal(why)
		}
		if why := offline.Rate(&e); why != nil {
			t.Fatal(why)
		}
	}
	items, err := offline.Ledger().LineItems(prices)
	if err != nil {
		t.Fatal(err)
	}
	kinds := make(map[string]int)
	for i := range items {
		text, err := json.Marshal(&items[i])
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(doc); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		kinds[items[i].Kind]++
	}
	if kinds["usage"] == 0 || kinds["void"] == 0 || kinds["rounding"] == 0 {
		t.Errorf("not every kind was seen: %v", kinds)
	}
}
