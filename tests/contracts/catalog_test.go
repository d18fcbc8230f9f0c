package contracts

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/suanpan/suanpan/pkg/catalog"
)

const goodBook = `{"kind":"PriceBook","name":"public","currency":"CNY","timezone":"Asia/Shanghai",
"effective_from":"2025-12-01T00:00:00+08:00","rounding":"half_even",
"bands":[{"name":"holiday","when":[{"calendar":"cn-holidays"}]},
 {"name":"night","timezone":"UTC","when":[{"from":"22:00","to":"24:00","days":["mon","fri"],
  "except":"cn-holidays"},{"from":"00:00","to":"06:00"}]}],
"skus":[{"sku":"gpu.a800-80g","memory_gib":80},{"sku":"gpu.a10","memory_gib":"24"}],
"prices":[{"sku":"gpu.a800-80g","purchase":"on_demand","per":"hour","price":"30.00","increment":"1h",
  "minimum":"60s","bands":{"night":{"multiplier":"0.4"}}},
 {"sku":"gpu.a800-80g","purchase":"spot","region":"cn-north","per":"hour",
  "market":{"floor":"0.2","cap":"1"}},
 {"sku":"cpu.core","per":"month","ladder":{"mode":"graduated","window":"hour",
  "tiers":[{"up_to":"10.5","price":"2"},{"price":0.5}]}},
 {"sku":"tokens.trained","per":"unit","price":"6","package":"1000000"}]}`

// schemaOf validates a document, as JSON or YAML has it, by the schema of its kind.
func schemaOf(t *testing.T, all map[string]*jsonschema.Schema, text string) error {
	t.Helper()
	var tree any
	if err := yaml.Unmarshal([]byte(text), &tree); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	kind, _ := doc.(map[string]any)["kind"].(string)
	s := all["catalog/"+strings.ToLower(kind)+".v1.json"]
	if s == nil {
		t.Fatalf("no schema for kind %q", kind)
	}
	return s.Validate(doc)
}

func TestCatalogSchemas_accept(t *testing.T) {
	all := compiled(t)
	if len(catalog.Kinds) == 0 {
		t.Fatal("the catalog knows no kinds")
	}
	for _, kind := range catalog.Kinds {
		if all["catalog/"+strings.ToLower(kind)+".v1.json"] == nil {
			t.Errorf("no schema for kind %s", kind)
		}
	}
	for _, text := range []string{
		goodBook,
		`{"kind":"Calendar","name":"cn-holidays","days":["2026-01-01","2026-02-17"]}`,
		`{"kind":"Calendar","name":"none","days":[]}`,
		`{"kind":"Tenant","name":"算盘/acme@1","price_book":"public"}`,
		`{"kind":"Contract","name":"acme-2026","tenant":"acme","seller":"us","price_book":"public",
		  "effective_from":"2026-01-01T00:00:00Z","end":"2027-01-01T00:00:00Z","timezone":"UTC"}`,
	} {
		if err := schemaOf(t, all, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if _, err := catalog.Parse("good", []byte(text)); err != nil {
			t.Errorf("the catalog refuses %s: %v", text, err)
		}
	}
}

func TestCatalogSchemas_refuse(t *testing.T) {
	all := compiled(t)
	f := func(old, by string) {
		t.Helper()
		if !strings.Contains(goodBook, old) {
			t.Fatalf("the book has no %s", old)
		}
		text := strings.Replace(goodBook, old, by, 1)
		if err := schemaOf(t, all, text); err == nil {
			t.Errorf("the schema accepts %s for %s", by, old)
		}
		if _, err := catalog.Parse("bad", []byte(text)); err == nil {
			t.Errorf("the catalog accepts %s for %s", by, old)
		}
	}
	f(`"name":"public"`, `"name":"pub lic"`)
	f(`"name":"public"`, `"name":""`)
	f(`"name":"public",`, ``)
	f(`"CNY"`, `"yuan"`)
	f(`"Asia/Shanghai"`, `""`)
	f(`"timezone":"Asia/Shanghai",`, ``)
	f(`"2025-12-01T00:00:00+08:00"`, `"2025-12-01"`)
	f(`"half_even"`, `"down"`)
	f(`"rounding"`, `"round"`)
	f(`"name":"night"`, `"name":"standard"`)
	f(`{"calendar":"cn-holidays"}`, `{"calendar":"cn-holidays","days":["mon"]}`)
	f(`[{"calendar":"cn-holidays"}]`, `[]`)
	f(`"22:00"`, `"24:00"`)
	f(`"22:00"`, `"9:00"`)
	f(`"from":"22:00",`, ``)
	f(`"mon"`, `"monday"`)
	f(`["mon","fri"]`, `[]`)
	f(`"per":"hour"`, `"per":"minute"`)
	f(`"30.00"`, `"-30.00"`)
	f(`"30.00"`, `"3e1"`)
	f(`"30.00"`, `"1000000000000000"`)
	f(`"1h"`, `"1w"`)
	f(`"1h"`, `"1.5h"`)
	f(`"purchase":"on_demand"`, `"purchase":"prepaid"`)
	f(`"purchase":"spot",`, ``)
	f(`"market"`, `"price":"1","market"`)
	f(`"cap":"1"`, `"ceiling":"1"`)
	f(`"graduated"`, `"stepped"`)
	f(`"window":"hour"`, `"window":"day"`)
	f(`"10.5"`, `"0"`)
	f(`[{"up_to":"10.5","price":"2"},{"price":0.5}]`, `[]`)
	f(`"ladder"`, `"package":"2","ladder"`)
	f(`"price":"6",`, ``)
	f(`"1000000"`, `"0"`)
	f(`{"multiplier":"0.4"}`, `{"price":"0.4"}`)
	f(`"cpu.core"`, `"cpu core"`)
	f(`"memory_gib":80`, `"memory_gib":0`)
	f(`"memory_gib":80`, `"memory_gib":1.5`)
	f(`"memory_gib":"24"`, `"memory":"24"`)
	f(`,"memory_gib":"24"`, ``)
}

func TestSharedCatalogs(t *testing.T) {
	names, err := filepath.Glob("../../../shared/examples/*/catalog.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		t.Skip("optional: there is no ../shared/examples beside the repository")
	}
	all := compiled(t)
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range strings.Split(string(data), "\n---\n") {
			if err := schemaOf(t, all, text); err != nil {
				t.Errorf("%s: %v\n%s", name, err, text)
			}
		}
	}
}

func TestLineItemSchema(t *testing.T) {
	s := compiled(t)["lineitem.v1.json"]
	good := `{"tenant":"acme","project":"llm","lease":"lease-7","session":"lease-7.0","node":"n1",
	"region":"cn-north","sku":"gpu.a800-80g","purchase":"on_demand","band":"standard",
	"usage_start":"2026-01-05T02:00:00Z","usage_end":"2026-01-05T02:01:00Z","day":"2026-01-05",
	"billing_period":"2026-01","usage_period":"2026-01","kind":"usage","labels":{"team":"research"},
	"base_quantity":"60.000000000","base_unit":"unit-second","unit_price":"30","per":"hour",
	"list_amount":"0.500000000000","amount":"0.500000000000","effective_amount":"0.500000000000",
	"currency":"CNY"}`
	check := func(text string) error {
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return s.Validate(doc)
	}
	if err := check(good); err != nil {
		t.Fatal(err)
	}
	for old, by := range map[string]string{
		`"60.000000000"`: `60`, `"kind":"usage"`: `"kind":"gift"`, `"2026-01"`: `"2026-13"`,
		`"usage_end":"2026-01-05T02:01:00Z"`: `"usage_end":"2026-01-05T10:01:00+08:00"`,
		`"unit-second"`:                      `"hour"`, `"CNY"`: `"cny"`, `"tenant":"acme",`: ``, `"per"`: `"per_unit"`,
	} {
		if err := check(strings.Replace(good, old, by, 1)); err == nil || !strings.Contains(good, old) {
			t.Errorf("%s for %s is accepted", by, old)
		}
	}
	var columns map[string]any
	if err := json.Unmarshal([]byte(good), &columns); err != nil {
		t.Fatal(err)
	}
	if len(columns) != 24 {
		t.Errorf("the example has %d columns", len(columns))
	}
}
