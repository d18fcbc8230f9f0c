package catalog

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/suanpan/suanpan/pkg/metering"
)

// MaxTemplateBytes is the length of the longest text of a template.
const MaxTemplateBytes = 64 << 10

// Template is one version of how messages of a type read as e-mail. Whether its texts can be
// rendered is judged where messages are made.
type Template struct {
	Name     string
	From     int64  // the second from which it holds
	Type     string // of messages, such as budget.threshold_reached; "" is every other
	Language string // en or zh; "" is those without one of their own
	Subject  string // what is empty stays built in
	Text     string
	HTML     string
	Deleted  bool // it ends here
}

// Template returns the template that a document is, if it is one.
func (d *Document) Template() (*Template, bool) {
	t, ok := d.body.(*Template)
	return t, ok
}

// messageType is a type of messages: words joined by dots.
var messageType = regexp.MustCompile(`^[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)*$`)

func (r *reader) template(n *yaml.Node, common []field, d *Document) *Template {
	t := new(Template)
	text := func(name string, to *string, allowed string) field {
		return field{name, false, func(n *yaml.Node) {
			*to = r.text(n, name)
			r.checkText(n, name, *to, MaxTemplateBytes, allowed)
		}}
	}
	r.mapping(n, "Template", append(common,
		field{"type", false, func(n *yaml.Node) {
			t.Type = r.text(n, "type")
			if !messageType.MatchString(t.Type) || len(t.Type) > MaxNameBytes {
				r.fail(n, "type %q is not a type of messages, such as budget.threshold_reached", t.Type)
			}
		}},
		field{"language", false, func(n *yaml.Node) {
			t.Language = r.oneOf(n, "language", "en", "zh")
		}},
		text("subject", &t.Subject, ""), text("text", &t.Text, "\n\t"), text("html", &t.HTML, "\n\t"),
		field{"deleted", false, func(n *yaml.Node) { t.Deleted = r.boolean(n, "deleted") }})...)
	if t.Subject == "" && t.Text == "" && t.HTML == "" && !t.Deleted {
		r.fail(n, "a template needs one of subject, text, html: the others stay built in")
	}
	t.Name, t.From = d.Name, d.From
	return t
}

// Templates returns the templates in force at a second, by name. Of several for one type and
// language, only the first is there.
func (c *Catalog) Templates(at int64) []*Template {
	all := c.templatesAt(at)
	return slices.DeleteFunc(slices.Clone(all), func(t *Template) bool {
		return slices.ContainsFunc(all, func(other *Template) bool {
			return other.Name < t.Name && other.same(t)
		})
	})
}

// TemplatesUntil returns the second after one at which the templates in force may change next.
func (c *Catalog) TemplatesUntil(at int64) int64 {
	until := metering.MaxSecond
	for _, h := range c.templates {
		until = min(until, h.next(at))
	}
	return until
}

func (c *Catalog) templatesAt(at int64) []*Template {
	var all []*Template
	for _, h := range c.templates {
		if v, ok := h.at(at); ok && !v.doc.Deleted {
			all = append(all, v.doc)
		}
	}
	slices.SortFunc(all, func(a, b *Template) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// same reports whether two templates are for the same messages.
func (t *Template) same(other *Template) bool {
	return t.Type == other.Type && t.Language == other.Language
}

// checkTemplates finds templates that are for the same messages at one instant.
func (c *Catalog) checkTemplates() []error {
	var errs []error
	for i := range c.documents {
		d := &c.documents[i]
		t, ok := d.body.(*Template)
		if !ok || t.Deleted {
			continue
		}
		for _, other := range c.templatesAt(d.From) {
			if other.Name != t.Name && other.same(t) {
				errs = append(errs, fmt.Errorf("%s: %s and Template/%s are for the same type and language: "+
					"change one, or end it with deleted: true", d.At, d.ID(), other.Name))
			}
		}
	}
	return errs
}
