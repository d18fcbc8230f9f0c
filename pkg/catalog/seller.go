package catalog

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image/png"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
)

// Limits of sellers.
const (
	MaxLogoBytes   = 64 << 10 // of the PNG
	MaxLogoPixels  = 2000     // of its width and of its height
	MaxNotes       = 20
	MaxNoteBytes   = 1000
	MaxPaymentDays = 365
)

// Seller is one version of who issues invoices.
type Seller struct {
	Party

	Name     string
	From     int64 // the second from which it holds
	Website  string
	Zone     string
	Location *time.Location // of issue dates

	InvoiceSeries    string // begins the numbers of invoices
	CreditNoteSeries string // begins the numbers of credit notes; differs from the above
	PaymentDays      int64  // from the issue date to the due date
	Bank             *Bank  // nil: none
	Logo             []byte // a PNG; nil: none
	Notes            []string
	EmptyInvoices    bool // whether a period without lines gets an invoice of 0

	// HoldFactor is above how many times the median of the last three totals a total is held.
	HoldFactor money.Amount
	Accounts   Accounts
}

// Bank is where invoices are paid to. Only Account is always there.
type Bank struct {
	Name    string
	Account string // IBAN where there is one
	BIC     string
	Holder  string
}

// Accounts are the codes of the seller's ledger, "" where none is given.
type Accounts struct {
	Receivable string
	Tax        string
	Prepaid    string
	Promo      string
	Rounding   string
	Revenue    []RevenueAccount // the first whose SKU matches
}

// RevenueAccount is the account of the SKUs that a pattern matches.
type RevenueAccount struct {
	SKU     Pattern
	Account string
}

// RevenueAccount returns the account for what a SKU earns, "" where none is given.
func (a *Accounts) RevenueAccount(sku string) string {
	for _, r := range a.Revenue {
		if r.SKU.Matches(sku) {
			return r.Account
		}
	}
	return ""
}

// Pattern is a SKU, or how SKUs begin and a "*": gpu.a800-80g, gpu.*, or * for all.
type Pattern string

// Matches reports whether a SKU is meant.
func (p Pattern) Matches(sku string) bool {
	if prefix, open := strings.CutSuffix(string(p), "*"); open {
		return strings.HasPrefix(sku, prefix)
	}
	return string(p) == sku
}

func (r *reader) pattern(n *yaml.Node, what string) Pattern {
	s := r.text(n, what)
	if prefix, open := strings.CutSuffix(s, "*"); s != "*" && !validName(prefix) || !open && s == "" {
		r.fail(n, "%s %q is neither a SKU nor how SKUs begin, with a * at its end, such as gpu.*", what,
			s)
	}
	return Pattern(s)
}

// patterns reads a list of patterns, which may not be empty.
func (r *reader) patterns(n *yaml.Node, what string) []Pattern {
	var all []Pattern
	r.list(n, what, func(n *yaml.Node) { all = append(all, r.pattern(n, "sku")) })
	if n.Kind == yaml.SequenceNode && len(all) == 0 {
		r.fail(n, "%s is empty: leave it out for all SKUs", what)
	}
	return all
}

func (r *reader) seller(n *yaml.Node, common []field, d *Document) *Seller {
	s := &Seller{
		InvoiceSeries: "INV", CreditNoteSeries: "CN", PaymentDays: 30, HoldFactor: money.MustParse("10"),
	}
	fields := slices.Concat(common, r.partyFields(&s.Party), []field{
		r.lineField("website", &s.Website),
		{"timezone", true, func(n *yaml.Node) { s.Zone, s.Location = r.zone(n) }},
		{"series", false, func(n *yaml.Node) { r.series(n, s) }},
		{"payment_days", false, func(n *yaml.Node) {
			s.PaymentDays = r.whole(n, "payment_days", 0, MaxPaymentDays)
		}},
		{"bank", false, func(n *yaml.Node) { s.Bank = r.bank(n) }},
		{"logo", false, func(n *yaml.Node) { s.Logo = r.logo(n) }},
		{"notes", false, func(n *yaml.Node) { s.Notes = r.notes(n) }},
		{"empty_invoices", false, func(n *yaml.Node) {
			s.EmptyInvoices = r.boolean(n, "empty_invoices")
		}},
		{"hold_factor", false, func(n *yaml.Node) {
			if s.HoldFactor = r.amount(n, "hold_factor"); s.HoldFactor.Cmp(one) < 0 {
				r.fail(n, "hold_factor %s is below 1: it would hold usual invoices", s.HoldFactor)
			}
		}},
		{"accounts", false, func(n *yaml.Node) { s.Accounts = r.accounts(n) }},
	})
	for i := range fields {
		fields[i].required = fields[i].required || fields[i].name == "legal_name"
	}
	r.mapping(n, "Seller", fields...)
	s.Name, s.From = d.Name, d.From
	return s
}

var seriesPattern = regexp.MustCompile(`^[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*$`)

func (r *reader) series(n *yaml.Node, s *Seller) {
	short := func(to *string) func(*yaml.Node) {
		return func(n *yaml.Node) {
			*to = r.text(n, "series")
			if !seriesPattern.MatchString(*to) || len(*to) > 16 {
				r.fail(n, "series %q is not a short name such as INV or DE-INV: letters, digits and inner "+
					"dashes, at most 16", *to)
			}
		}
	}
	r.mapping(n, "series",
		field{"invoice", false, short(&s.InvoiceSeries)},
		field{"credit_note", false, short(&s.CreditNoteSeries)})
	if s.InvoiceSeries == s.CreditNoteSeries {
		r.fail(n, "invoices and credit notes both have the series %q: their numbers would be the same, "+
			"give them different ones", s.InvoiceSeries)
	}
}

var bicPattern = regexp.MustCompile(`^[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}(?:[A-Z0-9]{3})?$`)

func (r *reader) bank(n *yaml.Node) *Bank {
	b := new(Bank)
	r.mapping(n, "bank",
		r.lineField("name", &b.Name),
		field{"account", true, func(n *yaml.Node) { b.Account = r.line(n, "account") }},
		field{"bic", false, func(n *yaml.Node) {
			if b.BIC = r.text(n, "bic"); !bicPattern.MatchString(b.BIC) {
				r.fail(n, "bic %q is not a BIC such as DEUTDEFF or ICBKCNBJSHI", b.BIC)
			}
		}},
		r.lineField("holder", &b.Holder))
	return b
}

// logo reads a PNG in base64. It is decoded whole: what is accepted here can be printed later.
func (r *reader) logo(n *yaml.Node) []byte {
	text := strings.Join(strings.Fields(r.text(n, "logo")), "")
	if base64.StdEncoding.DecodedLen(len(text)) > MaxLogoBytes+2 {
		r.fail(n, "logo has more than %d bytes: make a smaller PNG", MaxLogoBytes)
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(data) > MaxLogoBytes {
		r.fail(n, "logo is not a PNG of at most %d bytes in base64 (base64 -w0 logo.png writes it)",
			MaxLogoBytes)
		return nil
	}
	size, err := png.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		r.fail(n, "logo is not a PNG: %v", err)
		return nil
	}
	if size.Width > MaxLogoPixels || size.Height > MaxLogoPixels {
		r.fail(n, "logo has %d x %d pixels, more than %d: make a smaller PNG", size.Width, size.Height,
			MaxLogoPixels)
		return nil
	}
	if _, err := png.Decode(bytes.NewReader(data)); err != nil {
		r.fail(n, "logo is not a whole PNG: %v", err)
		return nil
	}
	return data
}

func (r *reader) notes(n *yaml.Node) []string {
	var notes []string
	r.list(n, "notes", func(n *yaml.Node) {
		s := r.text(n, "note")
		r.checkText(n, "note", s, MaxNoteBytes, "\n")
		notes = append(notes, strings.TrimSpace(s))
	})
	if len(notes) > MaxNotes {
		r.fail(n, "there are %d notes, more than %d", len(notes), MaxNotes)
	}
	return notes
}

func (r *reader) accounts(n *yaml.Node) Accounts {
	var a Accounts
	code := func(name string, to *string) field {
		return field{name, false, func(n *yaml.Node) { *to = r.name(n, name) }}
	}
	r.mapping(n, "accounts",
		code("receivable", &a.Receivable), code("tax", &a.Tax), code("prepaid", &a.Prepaid),
		code("promo", &a.Promo), code("rounding", &a.Rounding),
		field{"revenue", false, func(n *yaml.Node) {
			r.list(n, "revenue", func(n *yaml.Node) {
				var v RevenueAccount
				r.mapping(n, "revenue account",
					field{"sku", true, func(n *yaml.Node) { v.SKU = r.pattern(n, "sku") }},
					field{"account", true, func(n *yaml.Node) { v.Account = r.name(n, "account") }})
				a.Revenue = append(a.Revenue, v)
			})
		}})
	return a
}

// Seller returns the version of a seller that is in force at a second.
func (c *Catalog) Seller(name string, at int64) (*Seller, bool) {
	v, ok := c.sellers[name].at(at)
	return v.doc, ok
}

// SellerOf returns who sells to a tenant under a contract ("" without one) at a second: whom the
// contract names, else whom the tenant names, else the only one that there is. After a contract's
// end its last version goes on. The error says how to mend it.
func (c *Catalog) SellerOf(tenant, contract string, at int64) (*Seller, error) {
	name, by := "", ""
	if t := c.tenants[tenant]; t != nil {
		if v, ok := t.versions.at(at); ok && v.doc.seller != "" {
			name, by = v.doc.seller, "Tenant/"+tenant
		}
		if v, ok := t.contracts[contract].at(at); ok && v.doc.seller != "" {
			name, by = v.doc.seller, "Contract/"+contract
		}
	}
	if name == "" {
		names := keys(c.sellers)
		switch len(names) {
		case 0:
			return nil, fmt.Errorf("tenant %s has no seller: apply a document of kind Seller", tenant)
		case 1:
			name, by = names[0], "the catalog"
		default:
			return nil, fmt.Errorf("tenant %s has no seller and there are several, %s: name one in the "+
				"seller field of Tenant/%s", tenant, strings.Join(names, ", "), tenant)
		}
	}
	s, ok := c.Seller(name, at)
	if !ok {
		return nil, fmt.Errorf("%s names seller %q, which the catalog does not have at %s: apply a "+
			"Seller of that name with an earlier effective_from", by, name, metering.InstantOf(at))
	}
	return s, nil
}
