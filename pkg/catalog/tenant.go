package catalog

import (
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/suanpan/suanpan/pkg/metering"
)

// calendar is a set of local days, such as public holidays.
type calendar struct{ days map[int64]bool } // since 1970-01-01

func (r *reader) calendar(n *yaml.Node, common []field) *calendar {
	c := &calendar{days: make(map[int64]bool)}
	r.mapping(n, "Calendar", append(common, field{"days", true, func(n *yaml.Node) {
		r.list(n, "days", func(n *yaml.Node) {
			s := r.text(n, "day")
			t, err := time.Parse(time.DateOnly, s)
			if err != nil {
				r.fail(n, "day %q is not a date such as 2026-02-17", s)
				return
			}
			c.days[floorDiv(t.Unix(), daySeconds)] = true
		})
	}})...)
	return c
}

// tenantDoc says which price book a tenant has without a contract, and who it is.
type tenantDoc struct {
	book   string
	seller string // "" is the only one
	buyer  Buyer
}

func (r *reader) tenant(n *yaml.Node, common []field, d *Document) *tenantDoc {
	t := new(tenantDoc)
	r.mapping(n, "Tenant", slices.Concat(common, []field{
		{"price_book", true, func(n *yaml.Node) { t.book = r.name(n, "price_book") }},
		{"seller", false, func(n *yaml.Node) { t.seller = r.name(n, "seller") }},
		r.lineField("reference", &t.buyer.Reference),
	}, r.partyFields(&t.buyer.Party))...)
	t.buyer.Name = d.Name
	return t
}

// contractDoc is a version of a contract. From its start to its end it sets a tenant's price book
// and time zone.
type contractDoc struct {
	tenant   string
	seller   string // "" is the tenant's
	book     string
	end      int64 // the second from which it no longer holds
	zone     string
	location *time.Location // nil: the book's
}

func (r *reader) contract(n *yaml.Node, common []field) *contractDoc {
	c := &contractDoc{end: metering.MaxSecond}
	r.mapping(n, "Contract", append(common,
		field{"tenant", true, func(n *yaml.Node) { c.tenant = r.name(n, "tenant") }},
		field{"seller", false, func(n *yaml.Node) { c.seller = r.name(n, "seller") }},
		field{"price_book", true, func(n *yaml.Node) { c.book = r.name(n, "price_book") }},
		field{"end", false, func(n *yaml.Node) { c.end = r.instant(n, "end").Second() }},
		field{"timezone", false, func(n *yaml.Node) { c.zone, c.location = r.zone(n) }})...)
	return c
}

// dated is a version of something and the second from which it holds.
type dated[T any] struct {
	from int64
	doc  T
}

// history is a list of versions in ascending order of their starts.
type history[T any] []dated[T]

// at returns the version in force at a second.
func (h history[T]) at(second int64) (v dated[T], ok bool) {
	i, _ := slices.BinarySearchFunc(h, second+1, func(d dated[T], s int64) int {
		return int(min(1, max(-1, d.from-s)))
	})
	if i == 0 {
		return v, false
	}
	return h[i-1], true
}

// next returns the start of the first version after a second.
func (h history[T]) next(second int64) int64 {
	for _, d := range h {
		if d.from > second {
			return d.from
		}
	}
	return metering.MaxSecond
}

// insert adds a version. It reports false when there is one from that second already.
func (h *history[T]) insert(from int64, doc T) bool {
	i := 0
	for i < len(*h) && (*h)[i].from < from {
		i++
	}
	if i < len(*h) && (*h)[i].from == from {
		return false
	}
	*h = slices.Insert(*h, i, dated[T]{from, doc})
	return true
}

// tenant is all that is known of one tenant.
type tenant struct {
	versions  history[*tenantDoc]
	contracts map[string]history[*contractDoc]
	bindings  []binding // follows from the two above
}

// binding says under which contract and price book a tenant is from a second on.
type binding struct {
	from            int64
	book            string // "" for none
	contract        string // "" without one
	contractVersion int64
	zone            string
	location        *time.Location // nil: the book's
}

// bind works the bindings out anew.
func (t *tenant) bind() {
	var instants []int64
	for _, v := range t.versions {
		instants = append(instants, v.from)
	}
	for _, versions := range t.contracts {
		for _, v := range versions {
			instants = append(instants, v.from, v.doc.end)
		}
	}
	slices.Sort(instants)
	t.bindings = t.bindings[:0]
	for _, at := range slices.Compact(instants) {
		b := t.bindingFrom(at)
		if n := len(t.bindings); n > 0 {
			last := t.bindings[n-1]
			last.from = at
			if last == b {
				continue
			}
		}
		t.bindings = append(t.bindings, b)
	}
}

func (t *tenant) bindingFrom(at int64) binding {
	for name, versions := range t.contracts {
		if v, ok := versions.at(at); ok && at < v.doc.end {
			return binding{at, v.doc.book, name, v.from, v.doc.zone, v.doc.location}
		}
	}
	b := binding{from: at}
	if v, ok := t.versions.at(at); ok {
		b.book = v.doc.book
	}
	return b
}

// binding returns the binding in force at a second and where the next one begins.
func (t *tenant) binding(at int64) (b binding, until int64) {
	until = metering.MaxSecond
	for i := len(t.bindings) - 1; i >= 0; i-- {
		if t.bindings[i].from <= at {
			return t.bindings[i], until
		}
		until = t.bindings[i].from
	}
	return binding{}, until
}

// overlap names two contracts of the tenant that hold at one instant.
func (t *tenant) overlap() (first, second string) {
	for a, as := range t.contracts {
		for b, bs := range t.contracts {
			if a >= b {
				continue
			}
			for _, v := range slices.Concat(as, bs) {
				x, okX := as.at(v.from)
				y, okY := bs.at(v.from)
				if okX && okY && v.from < x.doc.end && v.from < y.doc.end {
					return a, b
				}
			}
		}
	}
	return "", ""
}
