package catalog

import (
	"strings"
	"testing"
)

const templates = `
{kind: Template, name: b, type: budget.threshold_reached, language: zh, subject: "预算 {{.Title}}"}
---
{kind: Template, name: a, text: "{{.Summary}}\n", effective_from: "2026-02-01T00:00:00Z"}
---
{kind: Template, name: b, deleted: true, effective_from: "2026-03-01T00:00:00Z"}
---
{kind: Template, name: c, type: budget.threshold_reached, language: zh, html: "<b>{{.Title}}</b>",
  effective_from: "2026-03-01T00:00:00Z"}
`

func TestTemplates_inForceAtASecond(t *testing.T) {
	c := newCatalog(t, templates)
	f := func(at, until, want string) {
		t.Helper()
		var got []string
		for _, one := range c.Templates(second(t, at)) {
			got = append(got, one.Name+" "+one.Type+one.Language+" "+one.Subject+one.Text+one.HTML)
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("at %s: %q, want %q", at, text, want)
		}
		if got := c.TemplatesUntil(second(t, at)); until != "" && got != second(t, until) {
			t.Errorf("at %s they hold until %d, want %s", at, got, until)
		}
	}
	f("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z",
		"b budget.threshold_reachedzh 预算 {{.Title}}")
	f("2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z",
		"a  {{.Summary}}\n, b budget.threshold_reachedzh 预算 {{.Title}}")
	f("2026-03-01T00:00:00Z", "",
		"a  {{.Summary}}\n, c budget.threshold_reachedzh <b>{{.Title}}</b>")
}

func TestTemplates_ofTwoForTheSameMessagesTheFirstByNameCounts(t *testing.T) {
	documents, err := Parse("c.yaml", []byte(`
{kind: Template, name: z, text: z}
---
{kind: Template, name: y, text: y}
`))
	if err != nil {
		t.Fatal(err)
	}
	c := Empty()
	for _, d := range documents {
		if err := c.Add(d); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.Templates(second(t, "2026-01-01T00:00:00Z")); len(got) != 1 || got[0].Name != "y" {
		t.Errorf("in force are %+v", got)
	}
}

func TestParse_templateFailureSaysWhereAndWhy(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := failure("kind: Template\nname: t\n" + text + "\n"); got != want {
			t.Errorf("%s\nerror %s\nwant  %s", text, got, want)
		}
	}
	f("", "c.yaml:1: a template needs one of subject, text, html: the others stay built in")
	f("text: x\nlanguage: fr", `c.yaml:4: language "fr" is neither en nor zh`)
	f("text: x\ntype: Budget", `c.yaml:4: type "Budget" is not a type of messages, such as `+
		`budget.threshold_reached`)
	f("text: ''", "c.yaml:3: text is empty: write it, or leave the field out\n"+
		"c.yaml:1: a template needs one of subject, text, html: the others stay built in")
	f("subject: \"a\\nb\"", "c.yaml:3: subject has a character that cannot be printed, such as a "+
		"line break")
	f("body: x\ntext: y", `c.yaml:3: Template has no field "body"; it has kind, name, `+
		`effective_from, type, language, subject, text, html, deleted`)
	f("text: x\n---\n{kind: Template, name: u, text: y}", "c.yaml:1: Template/t and Template/u are "+
		"for the same type and language: change one, or end it with deleted: true\n"+
		"c.yaml:5: Template/u and Template/t are for the same type and language: change one, or end "+
		"it with deleted: true")
}
