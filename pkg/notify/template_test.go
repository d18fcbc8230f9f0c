package notify_test

import (
	"strings"
	"testing"

	"github.com/suanpan/suanpan/pkg/notify"
)

func TestNewTemplates_errorsNameTheTemplate(t *testing.T) {
	examples := []notify.Message{reached()}
	f := func(source notify.Template, want string) {
		t.Helper()
		source.Name = "monthly report"
		_, err := notify.NewTemplates(examples, source)
		if err == nil || !strings.Contains(err.Error(), `"monthly report"`) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want the template's name and %q", source, err, want)
		}
	}
	f(notify.Template{Subject: "{{.Title"}, "unclosed action")
	f(notify.Template{Text: "{{.Titel}}"}, "Titel")
	f(notify.Template{HTML: "{{.Titel}}"}, "Titel")
	f(notify.Template{Text: "{{.Data.spent}}"}, "spent")
	f(notify.Template{HTML: "<p>{{.Data.spent}}</p>"}, "spent")
	f(notify.Template{Text: "{{.Data.budget.limit}}"}, "limit")
	f(notify.Template{Text: "{{if .Data.spent}}x{{end}}"}, "spent")
	f(notify.Template{Text: "{{.Labels.team}}"}, "team")
	f(notify.Template{Text: "{{index .Evidence 7}}"}, "index")
	f(notify.Template{HTML: "<a href='{{if .Title}}x'{{end}}>"}, "html")
	f(notify.Template{Type: "budget.deleted", Text: "x"}, "no example")
	f(notify.Template{Text: `{{range 100000}}{{"0123456789"}}{{end}}`}, "more than the allowed bytes")
	f(notify.Template{Text: `{{define "a"}}{{template "a"}}{{end}}{{template "a"}}`},
		"exceeded maximum")
	_, err := notify.NewTemplates(examples, notify.Template{Name: "one", Text: "x"},
		notify.Template{Name: "two", Text: "y"}, notify.Template{Name: "three", Text: "{{"})
	if err == nil || !strings.Contains(err.Error(), `"two": "one" has the same`) ||
		!strings.Contains(err.Error(), `"three"`) {
		t.Errorf("two of one kind: %v", err)
	}
}

func TestTemplates_closestOneIsUsedAndTheRestIsBuiltIn(t *testing.T) {
	other := reached()
	other.Type = "budget.changed"
	templates, err := notify.NewTemplates([]notify.Message{reached(), other},
		notify.Template{Name: "any", Subject: "any: {{.Title}}"},
		notify.Template{Name: "any zh", Language: "zh", Subject: "任何"},
		notify.Template{
			Name: "type", Type: reached().Type, Subject: "{{.Data.spend}} of {{.Data.budget.amount}}",
		},
		notify.Template{
			Name: "type zh", Type: reached().Type, Language: "zh", Subject: "已用 {{.Data.spend}}",
			HTML: "<b>{{.Summary}}</b>",
		})
	if err != nil {
		t.Fatal(err)
	}
	f := func(kind, language, subject string) notify.Mail {
		t.Helper()
		m := reached()
		m.Type, m.Language, m.Summary = kind, language, "<script>"
		got, err := templates.Render(m)
		if err != nil || got.Subject != subject {
			t.Errorf("%s %s: %q, error %v, want %q", kind, language, got.Subject, err, subject)
		}
		return got
	}
	f(other.Type, "en", "any: Budget research reached 80 %")
	f(other.Type, "zh", "任何")
	f("other", "fr", "any: Budget research reached 80 %")
	got := f(reached().Type, "en", "812.50 of 1000.00")
	contains(t, got.Text, "<script>", "Evidence:")
	contains(t, got.HTML, "&lt;script&gt;")
	got = f(reached().Type, "zh", "已用 812.50")
	if got.HTML != "<b>&lt;script&gt;</b>" {
		t.Errorf("html %q", got.HTML)
	}
	contains(t, got.Text, "依据：")
}

// A template that fails when it counts does not swallow the alert.
func TestTemplates_failureFallsBackToTheBuiltInForm(t *testing.T) {
	templates, err := notify.NewTemplates([]notify.Message{reached()},
		notify.Template{Name: "spend", Text: "{{.Data.spend}}"})
	if err != nil {
		t.Fatal(err)
	}
	m := reached()
	for _, data := range []string{"", `{}`, `[]`} {
		m.Data = []byte(data)
		got, err := templates.Render(m)
		if err == nil || !strings.Contains(err.Error(), `"spend"`) {
			t.Errorf("data %q: %v", data, err)
		}
		if got.Subject != m.Title || !strings.Contains(got.Text, m.Summary) ||
			!strings.Contains(got.HTML, "812.50 USD") {
			t.Errorf("data %q: %+v", data, got)
		}
	}
}

func TestTemplates_subjectIsCutBetweenCharacters(t *testing.T) {
	m := reached()
	for n := range 5 {
		m.Title = strings.Repeat("a", n) + strings.Repeat("算", 90)
		got, err := new(notify.Templates).Render(m)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Subject) > notify.MaxSubjectBytes || len(got.Subject) < notify.MaxSubjectBytes-2 ||
			!strings.HasSuffix(got.Subject, "算…") {
			t.Errorf("%d bytes: %q", len(got.Subject), got.Subject)
		}
	}
}
