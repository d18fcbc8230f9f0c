package catalog

import "fmt"

// reference is what a document names, and where it names it.
type reference struct{ what, name string }

// references returns the names of other documents that a document has.
func (d *Document) references() []reference {
	switch body := d.body.(type) {
	case *tenantDoc:
		return append(optional("seller", body.seller), reference{"price book", body.book})
	case *contractDoc:
		return append(optional("seller", body.seller), reference{"price book", body.book},
			reference{"tenant", body.tenant})
	case *Version:
		return all("calendar", body.calendars)
	case *TaxRule:
		return append(optional("seller", body.Seller), all("tenant", body.Tenants)...)
	case *Grant:
		return all("tenant", []string{body.Tenant})
	case *Budget:
		return all("tenant", []string{body.Tenant})
	case *Policy:
		return all("tenant", body.Tenants)
	}
	return nil
}

func optional(what, name string) []reference {
	if name == "" {
		return nil
	}
	return []reference{{what, name}}
}

func all(what string, names []string) []reference {
	var list []reference
	for _, name := range names {
		list = append(list, reference{what, name})
	}
	return list
}

// check finds references to what is not there.
func (c *Catalog) check() []error {
	var errs []error
	for i := range c.documents {
		d := &c.documents[i]
		for _, r := range d.references() {
			if !c.has(r) {
				errs = append(errs, fmt.Errorf("%s: %s names %s %q, which is not in the catalog", d.At,
					d.ID(), r.what, r.name))
			}
		}
	}
	return errs
}

func (c *Catalog) has(r reference) bool {
	switch r.what {
	case "price book":
		return c.books[r.name] != nil
	case "calendar":
		return c.calendars[r.name] != nil
	case "seller":
		return c.sellers[r.name] != nil
	case "tenant":
		return c.HasTenant(r.name)
	}
	panic("BUG: nothing is a " + r.what)
}
