package scenario

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/suanpan/suanpan/pkg/billing"
)

// details are what a document of a script need not say: each is compared if it says any.
var details = []string{"by", "detail", "tier", "price", "note", "unrounded"}

// onlyProduct are those that the auditor does not know.
var onlyProduct = []string{"tier", "price"}

// print writes a document in the language of scenarios.
func print(d *billing.Document) string {
	var out strings.Builder
	put := func(format string, args ...any) {
		out.WriteString(strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ") + "\n")
	}
	contract := cmp.Or(d.Contract, "-")
	if d.Type == billing.CreditNote {
		put("credit-note %s %s %s %s %s", d.Tenant, contract, d.Period, d.Currency, d.Cites.ID)
	} else {
		put("invoice %s %s %s %s", d.Tenant, contract, d.Period, d.Currency)
	}
	for i := range d.Lines {
		printLine(put, &d.Lines[i], "usage")
	}
	put("subtotal %s", d.Subtotal)
	put("unrounded %s", d.UnroundedTotal)
	for _, t := range d.Taxes {
		inclusive := map[bool]string{true: " inclusive"}[t.Inclusive]
		put("tax %s %s%s: %s = %s %s", t.Category, t.Rate, inclusive, t.Taxable, t.Tax, t.ReasonCode)
	}
	put("total %s", d.Total)
	for _, p := range d.Prepaid {
		put("prepaid %s = %s", p.Grant, p.Amount)
	}
	put("due %s", d.Due)
	for _, n := range d.Notes {
		put("note %s", n)
	}
	return out.String()
}

func printLine(put func(string, ...any), l *billing.Line, verb string) {
	switch {
	case l.Kind == billing.CreditLine:
		put("credit %s = %s", cmp.Or(l.Grant, "limit"), l.Amount)
		return
	case l.Kind == billing.LateLine && l.SKU == "":
		put("late %s = %s", l.UsagePeriod, l.Amount)
		for i := range l.Details {
			printLine(put, &l.Details[i], "detail")
		}
		return
	}
	unit := map[string]string{"unit-second": "seconds", "unit": "units"}[l.Unit]
	put("%s %s %s %s: %s %s = %s", verb, l.SKU, l.Purchase, l.Band, plain(l.Quantity), unit, l.Amount)
	average := map[bool]string{true: " average"}[l.Average]
	if l.Package != "" {
		average += " package " + l.Package
	}
	put("price %s %s%s", l.UnitPrice, l.Per, average)
	for _, t := range l.Tiers {
		put("tier %s: %s at %s = %s", cmp.Or(t.UpTo, "-"), plain(t.Quantity), t.UnitPrice, plain(t.Exact))
	}
	b := &l.Breakdown
	for i, list := range [][]billing.Share{
		b.Projects, b.Teams, b.Models, b.ModelVersions, b.Stages,
	} {
		by := [...]string{"project", "team", "model", "model_version", "stage"}[i]
		for _, s := range list {
			put("by %s %s: %s = %s", by, cmp.Or(s.Name, "-"), plain(s.Quantity), s.Amount)
		}
	}
}

// plain writes a decimal without zeros at its end.
func plain(s string) string {
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// Without returns a document without the lines of some verbs.
func Without(document string, verbs ...string) string {
	var out strings.Builder
	for line := range strings.Lines(document) {
		verb, _, _ := strings.Cut(line, " ")
		keep := true
		for _, v := range verbs {
			keep = keep && v != verb
		}
		if keep {
			out.WriteString(line)
		}
	}
	return out.String()
}

// ForAuditor returns a document as the auditor writes it.
func ForAuditor(document string) string { return Without(document, onlyProduct...) }

// unsaid returns which verbs a document of a script does not say.
func unsaid(document string) []string {
	var out []string
	for _, verb := range details {
		if !strings.Contains("\n"+document, "\n"+verb+" ") {
			out = append(out, verb)
		}
	}
	return out
}
