package catalog

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bojanz/currency"
	"go.yaml.in/yaml/v3"
)

// MaxLineBytes is the longest text that stands on one line of a document: a street, a legal name.
const MaxLineBytes = 256

// Party is who sells or buys, as documents print it. Only a seller's legal name is required; what
// is not given is "".
type Party struct {
	LegalName    string
	Address      Address
	TaxID        string // VAT number, 统一社会信用代码 or the like
	Registration string // company number
	Endpoint     Endpoint
	Email        string
	Phone        string
	Language     string // of documents and messages: en or zh
}

// Address is a postal address. Country is ISO 3166, two letters; it is there where any part is.
type Address struct {
	Street     string
	Line2      string
	City       string
	Region     string
	PostalCode string
	Country    string
}

// Endpoint is an electronic address of the Peppol network: a scheme such as 0088 or 9930, and what
// the party is called there. Both are given or none.
type Endpoint struct{ Scheme, ID string }

// Buyer is a tenant as a party.
type Buyer struct {
	Party

	Name      string // of the tenant
	Reference string // what the buyer wants to see on its invoices, such as an order number
}

var (
	emailPattern = regexp.MustCompile(
		`^[A-Za-z0-9.!#$%&'*+/=?^_{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,250}[A-Za-z0-9])?$`)
	schemePattern = regexp.MustCompile(`^(?:[0-9]{4}|[A-Z]{2})$`)
)

// partyFields are the fields of a party, for the document that it is a part of.
func (r *reader) partyFields(p *Party) []field {
	return []field{
		r.lineField("legal_name", &p.LegalName),
		{"address", false, func(n *yaml.Node) { p.Address = r.address(n) }},
		r.lineField("tax_id", &p.TaxID),
		r.lineField("registration", &p.Registration),
		{"endpoint", false, func(n *yaml.Node) { p.Endpoint = r.endpoint(n) }},
		{"email", false, func(n *yaml.Node) { p.Email = r.email(n, "email") }},
		r.lineField("phone", &p.Phone),
		{"language", false, func(n *yaml.Node) { p.Language = r.oneOf(n, "language", "en", "zh") }},
	}
}

func (r *reader) address(n *yaml.Node) Address {
	var a Address
	r.mapping(n, "address",
		r.lineField("street", &a.Street),
		r.lineField("line2", &a.Line2),
		r.lineField("city", &a.City),
		r.lineField("region", &a.Region),
		r.lineField("postal_code", &a.PostalCode),
		field{"country", true, func(n *yaml.Node) { a.Country = r.country(n) }})
	return a
}

func (r *reader) country(n *yaml.Node) string {
	s := r.text(n, "country")
	// The library knows the currency of every country, and so the countries.
	if _, ok := currency.ForCountryCode(s); !ok {
		r.fail(n, "country %q is not in ISO 3166: write its two letters, such as CN or DE", s)
	}
	return s
}

func (r *reader) endpoint(n *yaml.Node) Endpoint {
	var e Endpoint
	r.mapping(n, "endpoint",
		field{"scheme", true, func(n *yaml.Node) {
			if e.Scheme = r.text(n, "scheme"); !schemePattern.MatchString(e.Scheme) {
				r.fail(n, "scheme %q is not of Peppol's list: four digits such as 0088 or 9930, or two "+
					"letters such as EM", e.Scheme)
			}
		}},
		field{"id", true, func(n *yaml.Node) { e.ID = r.line(n, "id") }})
	return e
}

func (r *reader) email(n *yaml.Node, what string) string {
	s := r.text(n, what)
	if !emailPattern.MatchString(s) {
		r.fail(n, "%s %q is not an e-mail address such as billing@example.com", what, s)
	}
	return s
}

// lineField is an optional field with one line of text.
func (r *reader) lineField(name string, to *string) field {
	return field{name, false, func(n *yaml.Node) { *to = r.line(n, name) }}
}

// line reads a text that fits on one line: not empty, no control characters.
func (r *reader) line(n *yaml.Node, what string) string {
	s := r.text(n, what)
	r.checkText(n, what, s, MaxLineBytes, "")
	return s
}

// checkText refuses texts that are empty, too long or with control characters that are not allowed.
func (r *reader) checkText(n *yaml.Node, what, s string, maximum int, allowed string) {
	bad := strings.IndexFunc(s, func(c rune) bool {
		return unicode.IsControl(c) && !strings.ContainsRune(allowed, c)
	})
	switch {
	case n.Kind != yaml.ScalarNode || n.Tag == "!!null": // reported already
	case strings.TrimSpace(s) == "":
		r.fail(n, "%s is empty: write it, or leave the field out", what)
	case len(s) > maximum:
		r.fail(n, "%s has %d bytes, more than %d", what, len(s), maximum)
	case !utf8.ValidString(s) || bad >= 0:
		r.fail(n, "%s has a character that cannot be printed, such as a line break", what)
	}
}

// boolean reads true or false. In canonical documents it is a text.
func (r *reader) boolean(n *yaml.Node, what string) bool {
	return r.oneOf(n, what, "true", "false") == "true"
}

// whole reads a number of digits only, within bounds.
func (r *reader) whole(n *yaml.Node, what string, least, most int64) int64 {
	s := r.text(n, what)
	var number int64
	for _, c := range s {
		if c < '0' || c > '9' || number > most {
			number = -1
			break
		}
		number = number*10 + int64(c-'0')
	}
	if s == "" || number < least || number > most {
		r.fail(n, "%s %q is not a whole number from %d to %d", what, s, least, most)
		return least
	}
	return number
}

// Buyer returns a tenant as a party, of the version in force at a second.
func (c *Catalog) Buyer(tenant string, at int64) (*Buyer, bool) {
	t := c.tenants[tenant]
	if t == nil {
		return nil, false
	}
	v, ok := t.versions.at(at)
	if !ok {
		return nil, false
	}
	return &v.doc.buyer, true
}
