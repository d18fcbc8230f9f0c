package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Catalog is a consistent set of documents and market prices. It may not be changed and read
// concurrently.
type Catalog struct {
	// Revision grows with every change. A [Quote] that was got at another revision may hold less
	// long than it says.
	Revision uint64

	documents []Document
	index     map[versionKey]int // where in documents
	books     map[string]*book
	tenants   map[string]*tenant
	calendars map[string]history[*calendar]
	sellers   map[string]history[*Seller]
	taxRules  map[string]history[*TaxRule]
	grants    map[string]*Grant
	budgets   map[string]history[*Budget]
	policies  map[string]history[*Policy]
	templates map[string]history[*Template]
	market    map[marketKey][]point
	batches   map[string]string // the apply that the first version of a kind and name came with
	late      map[lateKey]*Version
}

type versionKey struct {
	kind, name string
	from       int64
}

// book is all versions of a price book.
type book struct {
	name     string
	versions history[*Version]
}

// Empty returns a catalog that has nothing.
func Empty() *Catalog {
	return &Catalog{
		index:     make(map[versionKey]int),
		books:     make(map[string]*book),
		tenants:   make(map[string]*tenant),
		calendars: make(map[string]history[*calendar]),
		sellers:   make(map[string]history[*Seller]),
		taxRules:  make(map[string]history[*TaxRule]),
		grants:    make(map[string]*Grant),
		budgets:   make(map[string]history[*Budget]),
		policies:  make(map[string]history[*Policy]),
		templates: make(map[string]history[*Template]),
		market:    make(map[marketKey][]point),
		batches:   make(map[string]string),
		late:      make(map[lateKey]*Version),
	}
}

// New returns the catalog of the documents, or all that is wrong with them: versions that differ
// but start together, names that nothing has, contracts that overlap, a book whose currency or time
// zone changes. Each error names file and line.
func New(documents []Document) (*Catalog, error) {
	c := Empty()
	var errs []error
	for i := range documents {
		if err := c.Add(documents[i]); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 {
		errs = append(c.check(), c.checkTemplates()...)
	}
	return c, errors.Join(errs...)
}

// Documents returns the documents that the catalog took in, in the order in which it did.
func (c *Catalog) Documents() []Document { return c.documents }

// Version returns the document of a kind and name that starts at a second.
func (c *Catalog) Version(kind, name string, from int64) (Document, bool) {
	i, ok := c.index[versionKey{kind, name, from}]
	if !ok {
		return Document{}, false
	}
	return c.documents[i], true
}

// Add takes one version in. It fails, and changes nothing, where the version contradicts those that
// are there; adding the same one again does nothing. References to other documents are not checked:
// what they name may come later.
func (c *Catalog) Add(d Document) error {
	if old, ok := c.Version(d.Kind, d.Name, d.From); ok {
		if string(old.JSON) == string(d.JSON) {
			return nil
		}
		return fmt.Errorf("%s: %s differs from the version at %s that starts at the same instant: "+
			"a version is immutable, give the change a later effective_from", d.At, d.ID(), old.At)
	}
	if err := c.addBody(d); err != nil {
		return err
	}
	c.index[versionKey{d.Kind, d.Name, d.From}] = len(c.documents)
	c.documents = append(c.documents, d)
	c.Revision++
	return nil
}

func (c *Catalog) addBody(d Document) error {
	switch body := d.body.(type) {
	case *calendar:
		insert(c.calendars, d, body)
	case *Version:
		return c.addVersion(d, body)
	case *Seller:
		insert(c.sellers, d, body)
	case *tenantDoc:
		t := c.tenant(d.Name)
		t.versions.insert(d.From, body)
		t.bind()
	case *contractDoc:
		return c.addContract(d, body)
	case *TaxRule:
		insert(c.taxRules, d, body)
	case *Grant:
		if c.grants[d.Name] != nil {
			return fmt.Errorf("%s: %s is given once and has no further versions: give more by a grant of "+
				"another name", d.At, d.ID())
		}
		c.grants[d.Name] = body
	case *Budget:
		if h := c.budgets[d.Name]; len(h) > 0 && h[0].doc.Tenant != body.Tenant {
			return fmt.Errorf("%s: %s is tenant %s's and cannot become %s's: make a new budget", d.At,
				d.ID(), h[0].doc.Tenant, body.Tenant)
		}
		insert(c.budgets, d, body)
	case *Policy:
		insert(c.policies, d, body)
	case *Template:
		insert(c.templates, d, body)
	default:
		panic(fmt.Sprintf("BUG: document %s has no body", d.ID()))
	}
	return nil
}

// insert adds a version to the history of its name.
func insert[T any](to map[string]history[T], d Document, body T) {
	h := to[d.Name]
	h.insert(d.From, body)
	to[d.Name] = h
}

func keys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

func (c *Catalog) tenant(name string) *tenant {
	t := c.tenants[name]
	if t == nil {
		t = &tenant{contracts: make(map[string]history[*contractDoc])}
		c.tenants[name] = t
	}
	return t
}

func (c *Catalog) addVersion(d Document, v *Version) error {
	b := c.books[d.Name]
	if b == nil {
		b = &book{name: d.Name}
		c.books[d.Name] = b
	}
	if len(b.versions) > 0 {
		first := b.versions[0].doc
		if first.Currency != v.Currency || first.Zone != v.Zone {
			return fmt.Errorf("%s: %s has %s in %s and cannot become %s in %s: make a new book", d.At,
				d.ID(), first.Currency, first.Zone, v.Currency, v.Zone)
		}
	}
	b.versions.insert(d.From, v)
	return nil
}

func (c *Catalog) addContract(d Document, doc *contractDoc) error {
	for name, t := range c.tenants {
		if h := t.contracts[d.Name]; len(h) > 0 && name != doc.tenant {
			return fmt.Errorf("%s: %s is tenant %s's and cannot become %s's", d.At, d.ID(), name,
				doc.tenant)
		}
	}
	if doc.end <= d.From {
		return fmt.Errorf("%s: %s ends before it starts", d.At, d.ID())
	}
	t := c.tenant(doc.tenant)
	h := t.contracts[d.Name]
	h.insert(d.From, doc)
	t.contracts[d.Name] = h
	if a, b := t.overlap(); a != "" {
		t.contracts[d.Name] = slices.DeleteFunc(h, func(v dated[*contractDoc]) bool {
			return v.doc == doc
		})
		return fmt.Errorf("%s: contracts %s and %s of tenant %s hold at one instant", d.At, a, b,
			doc.tenant)
	}
	t.bind()
	return nil
}

// HasTenant reports whether there is a tenant of that name, from whatever second on.
func (c *Catalog) HasTenant(name string) bool {
	t := c.tenants[name]
	return t != nil && len(t.versions) > 0
}

// Tenants returns the names of all tenants, from whatever second on, ascending.
func (c *Catalog) Tenants() []string {
	return slices.DeleteFunc(keys(c.tenants), func(name string) bool { return !c.HasTenant(name) })
}

// BookVersion returns the version of a price book that starts at a second.
func (c *Catalog) BookVersion(name string, from int64) (*Version, bool) {
	if b := c.books[name]; b != nil {
		if v, ok := b.versions.at(from); ok && v.from == from {
			return v.doc, true
		}
	}
	late := c.late[lateKey{name, from}]
	return late, late != nil
}

// Longest is the longest increment or minimum of any version of a book, in seconds.
func (c *Catalog) Longest(name string) int64 {
	b := c.books[name]
	if b == nil {
		return 0
	}
	longest := slices.MaxFunc(b.versions, func(x, y dated[*Version]) int {
		return cmp.Compare(x.doc.Longest(), y.doc.Longest())
	})
	return longest.doc.Longest()
}
