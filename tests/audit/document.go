package audit

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
)

// text prints the document in the language of scenarios.
func (d *document) text() string {
	var out strings.Builder
	put := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	contract := cmp.Or(d.contract, "-")
	if d.note == "" {
		put("invoice %s %s %s %s", d.tenant, contract, d.period, d.currency)
	} else {
		put("credit-note %s %s %s %s %s", d.tenant, contract, d.period, d.currency, d.note)
	}
	for i := range d.lines {
		d.lines[i].print(put, "usage", d.amounts[i], d.digits)
	}
	put("subtotal %s", d.subtotal.FloatString(d.digits))
	put("unrounded %s", d.exact.FloatString(12))
	for _, t := range d.taxes {
		if t.treatment.category == "" || d.note != "" && t.net.Sign() == 0 && t.tax.Sign() == 0 {
			continue
		}
		put("%s", strings.Join(strings.Fields(fmt.Sprintf("tax %s %s%s: %s = %s %s",
			t.treatment.category, t.treatment.rate,
			map[bool]string{true: " inclusive"}[t.treatment.inclusive], t.net.FloatString(d.digits),
			t.tax.FloatString(d.digits), t.treatment.code)), " "))
	}
	put("total %s", d.total.FloatString(d.digits))
	for _, p := range d.prepaid {
		put("prepaid %s", p)
	}
	put("due %s", d.due.FloatString(d.digits))
	for _, n := range d.remarks {
		put("note %s", n)
	}
	return out.String()
}

func (l *line) print(put func(string, ...any), verb string, amount *big.Rat, digits int) {
	switch {
	case l.grant:
		put("credit %s = %s", l.label, amount.FloatString(digits))
	case l.late != "" && l.label == "":
		put("late %s = %s", l.late, amount.FloatString(digits))
		if len(l.details) == 0 {
			return // the rest of another credit note
		}
		for i, part := range remainders(amount, exacts(l.details), digits) {
			l.details[i].print(put, "detail", part, digits)
		}
	default:
		put("%s %s: %s %s = %s", verb, l.label, plainNumber(l.quantity.FloatString(9)), l.unit,
			amount.FloatString(digits))
		l.printParts(put, amount, digits)
	}
}

func (l *line) printParts(put func(string, ...any), amount *big.Rat, digits int) {
	for d, parts := range l.parts {
		var names []string
		var exact []*big.Rat
		for _, name := range slices.Sorted(maps.Keys(parts)) {
			if s := parts[name]; s.quantity.Sign() != 0 || s.exact.Sign() != 0 {
				names, exact = append(names, name), append(exact, s.exact)
			}
		}
		if d > 0 && len(names) == 1 && names[0] == "" {
			continue
		}
		for i, a := range remainders(amount, exact, digits) {
			put("by %s %s: %s = %s", dimensionNames[d], cmp.Or(names[i], "-"),
				plainNumber(parts[names[i]].quantity.FloatString(9)), a.FloatString(digits))
		}
	}
}
