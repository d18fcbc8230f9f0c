package billing

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// latePrefix begins the IDs of credit notes that late events made; the billing period follows, and
// after lateOf the usage period if the note is on the invoice of another one.
const (
	latePrefix = "late-"
	lateOf     = "-of-"
)

// lateID is the ID of the credit note that late events of a usage period make with the close of a
// billing period, on the invoice of some period.
func lateID(billing, usage, invoice string) string {
	if usage == invoice {
		return latePrefix + billing
	}
	return latePrefix + billing + lateOf + usage
}

// DecidedAt returns the billing period with whose close the document was decided on. It fails for a
// credit note that a person made.
func (d *Document) DecidedAt() (string, error) {
	if d.Type == Invoice {
		return d.Period, nil
	}
	period, ok := strings.CutPrefix(d.Cites.ID, latePrefix)
	if !ok {
		return "", errors.New("a person made this credit note: it follows from no events")
	}
	period, _, _ = strings.Cut(period, lateOf)
	return period, nil
}

// Differences says what of two forms of one document is not alike, but for what issuing adds and
// what is as of issue: numbers, dates, parties, notes, and the place of the close.
func Differences(want, got *Document) []string {
	a, b := flat(want), flat(got)
	names := make(map[string]bool)
	for name := range a {
		names[name] = true
	}
	for name := range b {
		names[name] = true
	}
	var out []string
	for _, name := range sortedKeys(names) {
		if a[name] != b[name] {
			out = append(out, fmt.Sprintf("%s is %s, and should be %s", name, orNothing(b[name]),
				orNothing(a[name])))
		}
	}
	return out
}

func orNothing(text string) string {
	if text == "" {
		return "not there"
	}
	return text
}

// flat lists the values of a document by their paths.
func flat(d *Document) map[string]string {
	c := *d
	c.Number, c.IssueDate, c.DueDate, c.Language = "", "", "", ""
	c.Seller, c.Buyer, c.Notes = nil, nil, nil
	c.Proof = Proof{Rows: d.Proof.Rows, RowsSHA256: d.Proof.RowsSHA256}
	if d.Cites != nil {
		c.Cites = &Citation{Key: d.Cites.Key, ID: d.Cites.ID}
	}
	text, err := json.Marshal(&c)
	if err != nil {
		panic("BUG: encode document: " + err.Error())
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		panic("BUG: decode document: " + err.Error())
	}
	out := make(map[string]string)
	flatten("", tree, out)
	return out
}

func flatten(path string, node any, out map[string]string) {
	switch n := node.(type) {
	case map[string]any:
		for name, child := range n {
			flatten(strings.TrimPrefix(path+"."+name, "."), child, out)
		}
	case []any:
		for i, child := range n {
			flatten(fmt.Sprintf("%s[%d]", path, i), child, out)
		}
	case nil:
	default:
		out[path] = fmt.Sprintf("%v", n)
	}
}
