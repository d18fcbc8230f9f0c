package contracts

import (
	"strings"
	"testing"

	"github.com/suanpan/suanpan/pkg/catalog"
)

// goodDocuments has a document of each kind that prices nothing, with all fields.
var goodDocuments = map[string]string{
	"Seller": `{"kind":"Seller","name":"suanpan-eu","effective_from":"2025-12-01T00:00:00+08:00",
"legal_name":"算盘 GmbH","address":{"street":"Hauptstr. 1","line2":"Hof","city":"Berlin","region":"BE",
 "postal_code":"10115","country":"DE"},"tax_id":"DE123456789","registration":"HRB 1",
"endpoint":{"scheme":"9930","id":"DE123456789"},"email":"billing@example.com","phone":"+49 30 1",
"language":"en","website":"https://example.com","timezone":"Europe/Berlin",
"series":{"invoice":"EU-INV","credit_note":"EU-CN"},"payment_days":14,
"bank":{"name":"Bank","account":"DE02120300000000202051","bic":"BYLADEM1001","holder":"算盘 GmbH"},
"logo":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII=",
"notes":["Thank you.","Two\nlines."],"empty_invoices":true,"hold_factor":"2.5",
"accounts":{"receivable":"1122","tax":"2221.01","prepaid":"2203","promo":"6601","rounding":"6603",
 "revenue":[{"sku":"gpu.*","account":"6001.01"},{"sku":"*","account":6001}]}}`,
	"Tenant": `{"kind":"Tenant","name":"acme","price_book":"public","seller":"suanpan-eu",
"reference":"PO-1","legal_name":"Acme","address":{"country":"FR"},"tax_id":"FR1",
"endpoint":{"scheme":"EM","id":"a@example.com"},"email":"a@example.com","language":"zh"}`,
	"TaxRule": `{"kind":"TaxRule","name":"eu","seller":"suanpan-eu",
"buyer":{"countries":["FR","NL"],"tax_id":"present","tenants":["acme"]},"skus":["gpu.*"],
"category":"AE","rate":"0.0","inclusive":false,"reason":"Reverse charge","reason_code":"VATEX-EU-AE",
"priority":10}`,
	"Grant": `{"kind":"Grant","name":"welcome","tenant":"acme","amount":"100.50","currency":"CNY",
"source":"promo","expires":"2027-01-01T00:00:00Z"}`,
	"Budget": `{"kind":"Budget","name":"research","tenant":"acme","scope":{"project":"llm",
 "labels":{"team":"research"}},"period":"month","amount":"1000","currency":"CNY","basis":"list",
"thresholds":["0.5","0.8",1,"10"],"notify":[{"webhook":"https://example.com/a?b=c","secret":"ops"},
 {"email":"a@example.com"},{"alertmanager":"http://[::1]:9093"},{"log":true}],"owner":"Li",
"deleted":false}`,
	"Policy": `{"kind":"Policy","name":"idle","type":"idle_gpu","enabled":true,
"scope":{"tenants":["acme"],"projects":["llm"],"skus":["gpu.*","*"]},
"thresholds":{"utilisation":"40.5","minutes":"15"},
"quiet_hours":{"from":"22:00","to":"08:00","timezone":"Asia/Shanghai","days":["sat","sun"]},
"cooldown":"2h","notify":[{"log":"true"}]}`,
	"Template": `{"kind":"Template","name":"mine","type":"budget.threshold_reached","language":"zh",
"subject":"预算 {{.Title}}","text":"{{.Summary}}\n","html":"<b>{{.Title}}</b>","deleted":false}`,
}

// TestCatalogSchemas_acceptParties holds schema and parser together on what is valid, also on the
// canonical form, in which every value is a text.
func TestCatalogSchemas_acceptParties(t *testing.T) {
	all := compiled(t)
	texts := []string{
		`{"kind":"Template","name":"old","deleted":true}`,
		`{"kind":"Template","name":"any","text":"{{.Summary}}"}`,
		`{"kind":"Budget","name":"research","tenant":"acme","deleted":true}`,
		`{"kind":"Seller","name":"s","legal_name":"S","timezone":"UTC"}`,
		`{"kind":"TaxRule","name":"vat","category":"S","rate":6.5}`,
		`{"kind":"TaxRule","name":"zero","category":"Z"}`,
		`{"kind":"TaxRule","name":"islands","category":"L","rate":"0"}`,
		`{"kind":"Grant","name":"g","tenant":"acme","amount":1,"currency":"JPY","source":"paid"}`,
	}
	for _, p := range catalog.DefaultPolicies() {
		var thresholds []string
		for _, threshold := range catalog.Thresholds(p.Type) {
			thresholds = append(thresholds, `"`+threshold.Name+`":"`+threshold.Default.String()+`"`)
		}
		texts = append(texts, `{"kind":"Policy","name":"p","type":"`+string(p.Type)+
			`","thresholds":{`+strings.Join(thresholds, ",")+`}}`)
	}
	for _, text := range goodDocuments {
		texts = append(texts, text)
	}
	for _, text := range texts {
		if err := schemaOf(t, all, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		documents, err := catalog.Parse("good", []byte(text))
		if err != nil {
			t.Errorf("the catalog refuses %s: %v", text, err)
			continue
		}
		if err := schemaOf(t, all, string(documents[0].JSON)); err != nil {
			t.Errorf("canonical: %s: %v", documents[0].JSON, err)
		}
	}
}

func TestCatalogSchemas_refuseParties(t *testing.T) {
	all := compiled(t)
	f := func(kind, old, by string) {
		t.Helper()
		good := goodDocuments[kind]
		if !strings.Contains(good, old) {
			t.Fatalf("the %s has no %s", kind, old)
		}
		text := strings.Replace(good, old, by, 1)
		if err := schemaOf(t, all, text); err == nil {
			t.Errorf("%s: the schema accepts %s for %s", kind, by, old)
		}
		if _, err := catalog.Parse("bad", []byte(text)); err == nil {
			t.Errorf("%s: the catalog accepts %s for %s", kind, by, old)
		}
	}
	f("Seller", `"legal_name":"算盘 GmbH",`, ``)
	f("Seller", `"算盘 GmbH"`, `" "`)
	f("Seller", `"算盘 GmbH"`, `"a\nb"`)
	f("Seller", `"timezone":"Europe/Berlin",`, ``)
	f("Seller", `"country":"DE"`, `"country":"Germany"`)
	f("Seller", `,"country":"DE"`, ``)
	f("Seller", `"9930"`, `"993"`)
	f("Seller", `"billing@example.com"`, `"billing"`)
	f("Seller", `"language":"en"`, `"language":"de"`)
	f("Seller", `"EU-INV"`, `"INV-"`)
	f("Seller", `"EU-INV"`, `"A234567890123456X"`)
	f("Seller", `14`, `366`)
	f("Seller", `14`, `"1.5"`)
	f("Seller", `"account":"DE02120300000000202051",`, ``)
	f("Seller", `"BYLADEM1001"`, `"BYLADEM"`)
	f("Seller", `"iVBORw0KGgo`, `"R0lGODlhAQAB`)
	f("Seller", `"empty_invoices":true`, `"empty_invoices":"yes"`)
	f("Seller", `"2.5"`, `"0.5"`)
	f("Seller", `"gpu.*"`, `"*.gpu"`)
	f("Seller", `"6001.01"`, `"60 01"`)
	f("Seller", `"receivable"`, `"debtors"`)
	f("Tenant", `"reference"`, `"order"`)
	f("Tenant", `"EM"`, `"em"`)
	f("TaxRule", `["FR","NL"]`, `[]`)
	f("TaxRule", `"FR"`, `"France"`)
	f("TaxRule", `"present"`, `"yes"`)
	f("TaxRule", `["gpu.*"]`, `[]`)
	f("TaxRule", `"AE"`, `"VAT"`)
	f("TaxRule", `"AE","rate":"0.0"`, `"AE","rate":"6"`)
	f("TaxRule", `"AE","rate":"0.0"`, `"S","rate":"6"`) // has a reason
	f("TaxRule", `"reason":"Reverse charge",`, ``)
	f("TaxRule", `,"reason_code":"VATEX-EU-AE"`, ``)
	f("TaxRule", `"priority":10`, `"priority":-1`)
	goodDocuments["S"] = `{"kind":"TaxRule","name":"vat","category":"S","rate":"6.5"}`
	defer delete(goodDocuments, "S")
	f("S", `"6.5"`, `"0"`)
	f("S", `"6.5"`, `0`)
	f("S", `"6.5"`, `"100.1"`)
	f("S", `"6.5"`, `"0.00001"`)
	f("S", `,"rate":"6.5"`, ``)
	f("S", `"S"`, `"Z"`)
	f("Grant", `"100.50"`, `"0"`)
	f("Grant", `"100.50"`, `"-1"`)
	f("Grant", `"promo"`, `"gift"`)
	f("Grant", `"currency":"CNY",`, ``)
	f("Budget", `"1000"`, `"0.00"`)
	f("Budget", `"period":"month",`, ``)
	f("Budget", `"month"`, `"week"`)
	f("Budget", `"list"`, `"gross"`)
	f("Budget", `"0.5"`, `"0"`)
	f("Budget", `"10"`, `"10.5"`)
	f("Budget", `["0.5","0.8",1,"10"]`, `[]`)
	f("Budget", `"0.8"`, `"0.5"`)
	f("Budget", `{"team":"research"}`, `{}`)
	f("Budget", `"https://example.com/a?b=c"`, `"ftp://example.com"`)
	f("Budget", `"https://example.com/a?b=c"`, `"https://u:p@example.com"`)
	f("Budget", `{"log":true}`, `{"log":false}`)
	f("Budget", `{"log":true}`, `{}`)
	f("Budget", `{"log":true}`, `{"log":true,"email":"a@example.com"}`)
	f("Budget", `{"log":true}`, `{"log":true,"secret":"ops"}`)
	f("Policy", `"idle_gpu"`, `"bored_gpu"`)
	f("Policy", `"minutes"`, `"days"`)
	f("Policy", `"22:00"`, `"24:00"`)
	f("Policy", `,"timezone":"Asia/Shanghai"`, ``)
	f("Policy", `["sat","sun"]`, `[]`)
	f("Policy", `"2h"`, `"2 hours"`)
	f("Policy", `["acme"]`, `[]`)
	f("Policy", `"idle_gpu"`, `"low_utilisation"`)
	for _, p := range catalog.DefaultPolicies() {
		for _, scope := range []string{"tenants", "projects", "skus"} {
			text := `{"kind":"Policy","name":"p","type":"` + string(p.Type) +
				`","scope":{"` + scope + `":["a"]}}`
			accepted := schemaOf(t, all, text) == nil
			if _, err := catalog.Parse("scope", []byte(text)); accepted != (err == nil) {
				t.Errorf("%s: the schema accepts it: %t, the catalog: %v", text, accepted, err)
			}
		}
	}
	f("Template", `"budget.threshold_reached"`, `"Budget"`)
	f("Template", `"zh"`, `"fr"`)
	f("Template", `"预算 {{.Title}}"`, `"a\nb"`)
	f("Template", `"<b>{{.Title}}</b>"`, `""`)
	f("Template", `"html"`, `"body"`)
	f("Template", `"subject":"预算 {{.Title}}","text":"{{.Summary}}\n","html":"<b>{{.Title}}</b>",`, ``)
}
