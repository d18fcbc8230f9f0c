package contracts

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/billingtest"
)

// TestDocuments_fitTheirSchema validates documents of every form, and finds one that is not.
func TestDocuments_fitTheirSchema(t *testing.T) {
	schema := compiled(t)["invoice.v1.json"]
	if schema == nil {
		t.Fatal("there is no schema invoice.v1.json")
	}
	validate := func(d *billing.Document) error {
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return schema.Validate(value)
	}
	for name, d := range billingtest.Samples() {
		if err := validate(d); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, spoil := range map[string]func(*billing.Document){
		"an amount that is none": func(d *billing.Document) { d.Total = "1,000.00" },
		"a month that is none":   func(d *billing.Document) { d.Period = "2026" },
		"a kind that is none":    func(d *billing.Document) { d.Lines[0].Kind = "gift" },
	} {
		d := billingtest.Plain()
		spoil(d)
		if validate(d) == nil {
			t.Errorf("%s is valid", name)
		}
	}
}
