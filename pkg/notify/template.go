package notify

import (
	"embed"
	"errors"
	"fmt"
	"html/template"
	texttemplate "text/template"
	"time"
)

// Template is how messages of a type read as e-mail, instead of the built-in form. A part that is
// empty stays built in. Templates are Go's, text/template for subject and text, html/template for
// HTML; what they may use are the fields of [View].
type Template struct {
	Name     string // for error messages
	Type     string // of messages; "" is every type that has no template of its own
	Language string // "" is every language that has no template of its own
	Subject  string
	Text     string
	HTML     string
}

// View is what templates see of a message: its fields, and its data decoded.
type View struct {
	ID, Alert, Type, Tenant, Language string
	Severity, Status                  string // words of the message's language
	Time, Since                       time.Time
	Title, Summary, Query             string
	Evidence                          []Figure
	Labels                            map[string]string
	Data                              map[string]any // numbers are json.Number, as they were written
}

// Mail is a message as e-mail.
type Mail struct{ Subject, Text, HTML string }

// Templates render messages as e-mail. They may be used by several goroutines.
type Templates struct{ forms map[formKey]form }

type formKey struct{ kind, language string }

// form is the parts of one template, parsed; a nil one stays built in.
type form struct {
	name          string
	subject, text *texttemplate.Template
	html          *template.Template
}

// Bounds of what templates make.
const (
	maxSubjectBytes = 200
	maxPartBytes    = 256 << 10
)

//go:embed templates
var builtinFiles embed.FS

var builtins = map[bool]form{false: builtin("en"), true: builtin("zh")}

func builtin(language string) form {
	read := func(suffix string) string {
		data, err := builtinFiles.ReadFile("templates/" + language + suffix)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		return string(data)
	}
	f, err := parseForm(Template{
		Name: "built in, " + language, Subject: "{{.Title}}", Text: read(".txt"), HTML: read(".html"),
	})
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return f
}

// NewTemplates parses templates and renders each with the examples of its type (with every example,
// if its type is ""). The error names all templates that do not parse, use fields that an example
// has not, have no example, or are for the same type and language as another.
func NewTemplates(examples []Message, sources ...Template) (*Templates, error) {
	t := &Templates{make(map[formKey]form)}
	var errs []error
	for _, source := range sources {
		key := formKey{source.Type, source.Language}
		f, err := parseForm(source)
		if err == nil {
			err = f.try(source.Type, examples)
		}
		if other, taken := t.forms[key]; taken {
			err = fmt.Errorf("template %q: %q has the same type and language", source.Name, other.name)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		t.forms[key] = f
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return t, nil
}

func parseForm(source Template) (form, error) {
	f := form{name: source.Name}
	text := func(part, s string) (*texttemplate.Template, error) {
		if s == "" {
			return nil, nil
		}
		return texttemplate.New(part).Option("missingkey=error").Parse(s)
	}
	var errs [3]error
	f.subject, errs[0] = text("subject", source.Subject)
	f.text, errs[1] = text("text", source.Text)
	if source.HTML != "" {
		f.html, errs[2] = template.New("html").Option("missingkey=error").Parse(source.HTML)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return form{}, fmt.Errorf("parse template %q: %w", source.Name, err)
	}
	return f, nil
}

// try renders the examples of a type.
func (f form) try(kind string, examples []Message) error {
	tried := false
	for _, m := range examples {
		if kind != "" && kind != m.Type {
			continue
		}
		tried = true
		if _, err := f.render(m); err != nil {
			return err
		}
	}
	if !tried {
		return fmt.Errorf("check template %q: there is no example of type %q", f.name, kind)
	}
	return nil
}

// Render returns a message as e-mail. With an error, which names the template that failed, what it
// returns is the built-in form: a template that is wrong does not swallow an alert.
func (t *Templates) Render(m Message) (Mail, error) {
	for _, key := range []formKey{
		{m.Type, m.Language},
		{m.Type, ""},
		{"", m.Language},
		{"", ""},
	} {
		f, ok := t.forms[key]
		if !ok {
			continue
		}
		mail, err := f.render(m)
		if err != nil {
			return mustBuiltin(m), err
		}
		return mail, nil
	}
	return mustBuiltin(m), nil
}

// mustBuiltin renders the form that uses only what every message has.
func mustBuiltin(m Message) Mail {
	m.Data = nil // not used, and perhaps what failed
	mail, err := builtins[chinese(m.Language)].render(m)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return mail
}

func (f form) render(m Message) (Mail, error) {
	v, err := view(m)
	if err != nil {
		return Mail{}, fmt.Errorf("render template %q: %w", f.name, err)
	}
	parts := f.with(builtins[chinese(m.Language)])
	var mail Mail
	var errs [3]error
	mail.Subject, errs[0] = execute(parts.subject, v, maxPartBytes)
	mail.Text, errs[1] = execute(parts.text, v, maxPartBytes)
	mail.HTML, errs[2] = execute(parts.html, v, maxPartBytes)
	if err := errors.Join(errs[:]...); err != nil {
		return Mail{}, fmt.Errorf("render template %q: %w", f.name, err)
	}
	mail.Subject = oneLine(mail.Subject, maxSubjectBytes)
	return mail, nil
}

// with returns f with the parts of base that it has not.
func (f form) with(base form) form {
	if f.subject == nil {
		f.subject = base.subject
	}
	if f.text == nil {
		f.text = base.text
	}
	if f.html == nil {
		f.html = base.html
	}
	return f
}
