package biller

import (
	"errors"
	"sync/atomic"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/notify"
)

// Templates are the words of e-mail as the catalog has them. One goroutine follows the catalog,
// any may ask for the words.
type Templates struct {
	words    atomic.Pointer[notify.Templates]
	followed bool
	revision uint64
	until    int64 // the second from which others may hold
}

// NewTemplates returns the built-in words.
func NewTemplates() *Templates {
	t := new(Templates)
	t.words.Store(new(notify.Templates))
	return t
}

// Words returns the words that hold now.
func (t *Templates) Words() *notify.Templates { return t.words.Load() }

// Follow takes the templates that are in force at a second. The error names those that fail: the
// built-in words stay in their place.
func (t *Templates) Follow(c *catalog.Catalog, now int64) error {
	if t.followed && t.revision == c.Revision && now < t.until {
		return nil
	}
	examples := Examples()
	var good []notify.Template
	var errs []error
	for _, template := range c.Templates(now) {
		source := sourceOf(template)
		if _, err := notify.NewTemplates(examples, source); err != nil {
			errs = append(errs, err)
			continue
		}
		good = append(good, source)
	}
	words, err := notify.NewTemplates(examples, good...)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	t.words.Store(words)
	t.followed, t.revision, t.until = true, c.Revision, c.TemplatesUntil(now)
	return errors.Join(errs...)
}

// CheckTemplate renders a template with an example of each message that it is for.
func CheckTemplate(t *catalog.Template) error {
	_, err := notify.NewTemplates(Examples(), sourceOf(t))
	return err
}

func sourceOf(t *catalog.Template) notify.Template {
	return notify.Template{
		Name: t.Name, Type: t.Type, Language: t.Language, Subject: t.Subject, Text: t.Text, HTML: t.HTML,
	}
}
