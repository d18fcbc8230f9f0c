package biller_test

import (
	"strings"
	"testing"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/services/biller"
)

func TestTemplates_followTheCatalog(t *testing.T) {
	c := catalog.Empty()
	add := func(text string) {
		t.Helper()
		documents, err := catalog.Parse("t.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range documents {
			if err := c.Add(d); err != nil {
				t.Fatal(err)
			}
		}
	}
	templates := biller.NewTemplates()
	example := biller.Examples()[0]
	subject := func(now int64, wantErr string) string {
		t.Helper()
		err := templates.Follow(c, now)
		if wantErr == "" && err != nil || wantErr != "" &&
			(err == nil || !strings.Contains(err.Error(), wantErr)) {
			t.Errorf("at %d: error %v, want %q", now, err, wantErr)
		}
		mail, err := templates.Words().Render(example)
		if err != nil {
			t.Fatal(err)
		}
		return mail.Subject
	}
	f := func(now int64, want, wantErr string) {
		t.Helper()
		if got := subject(now, wantErr); got != want {
			t.Errorf("at %d: subject %q, want %q", now, got, want)
		}
	}
	f(100, example.Title, "")
	add(`{kind: Template, name: b, type: ` + example.Type + `, subject: "first",
  effective_from: "1970-01-01T00:03:20Z"}`)
	f(199, example.Title, "")
	f(200, "first", "")
	add(`{kind: Template, name: b, type: ` + example.Type + `, subject: "second",
  effective_from: "1970-01-01T00:05:00Z"}`)
	f(299, "first", "")
	f(300, "second", "")
	// A template that fails is not used, and keeps no other from being used.
	add(`{kind: Template, name: a, subject: "{{.Nothing}}", effective_from: "1970-01-01T00:06:40Z"}`)
	f(400, "second", `"a"`)
	f(401, "second", "")
	add(`{kind: Template, name: b, deleted: true, effective_from: "1970-01-01T00:08:20Z"}`)
	f(500, example.Title, `"a"`)
}

func TestCheckTemplate_rendersExamplesOfEveryType(t *testing.T) {
	f := func(template catalog.Template, want string) {
		t.Helper()
		template.Name = "mine"
		err := biller.CheckTemplate(&template)
		if want == "" && err != nil || want != "" &&
			(err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v: error %v, want %q", template, err, want)
		}
	}
	types := make(map[string]bool)
	for _, m := range biller.Examples() {
		if err := m.Validate(); err != nil {
			t.Errorf("%s: %v", m.Type, err)
		}
		types[m.Type] = true
		f(catalog.Template{Type: m.Type, Language: m.Language, Text: "{{.Title}} {{.Data.id}}"}, "")
	}
	// Of contracts and allowances nothing is told yet.
	if want := 1 + len(catalog.DefaultPolicies()) - 2; len(types) != want {
		t.Errorf("there are examples of %d types, want %d", len(types), want)
	}
	f(catalog.Template{Text: "{{range .Evidence}}{{.Name}}{{end}}"}, "")
	f(catalog.Template{Text: "{{.Data.threshold}}"}, "threshold") // not all have it
	f(catalog.Template{Type: "budget.over", Text: "x"}, "no example")
	f(catalog.Template{HTML: "<a href='{{if .Title}}x'{{end}}>"}, "html")
}
