// Package catalog holds what things cost and for whom: price books, tenants, contracts, calendars,
// sellers, tax rules, grants, budgets, policies and templates, each a list of immutable versions.
// YAML or JSON documents and market prices come in; for any tenant, SKU and second a [Quote] goes
// out, with how long it holds, and for any second who sells, how it is taxed and who is told. It
// does no I/O, reads no clock and uses no float.
package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/suanpan/suanpan/pkg/metering"
)

// Always is the effective_from of a version that holds at every second that can be billed.
const Always = metering.MinSecond

// Limits of documents.
const (
	MaxFileBytes = 16 << 20
	MaxNameBytes = 128
)

// Kinds are the kinds of documents, as they are written, each after those that it names.
var Kinds = []string{
	"Calendar", "PriceBook", "Seller", "Tenant", "Contract", "TaxRule", "Grant", "Budget", "Policy",
	"Template",
}

// Document is one version of something of any kind, such as a price book. It is valid by itself;
// whether it agrees with others is judged by [New].
type Document struct {
	Kind string
	Name string
	From int64  // the second from which it holds
	Set  bool   // whether effective_from was given
	JSON []byte // its canonical form: equal documents have equal bytes
	At   string // file and line, for errors

	body any // what its kind is read as: *calendar, *Version, *Seller, *tenantDoc and so on
}

// ID names the document's kind and name, as in "PriceBook/public".
func (d *Document) ID() string { return d.Kind + "/" + d.Name }

// Parse reads YAML or JSON documents, separated by "---". file is used in errors only. It reports
// all errors that it finds, each with file and line.
func Parse(file string, data []byte) ([]Document, error) {
	if len(data) > MaxFileBytes {
		return nil, fmt.Errorf("%s: the file has %d bytes, more than %d", file, len(data), MaxFileBytes)
	}
	r := &reader{file: file}
	var docs []Document
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var root yaml.Node
		err := decoder.Decode(&root)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			r.errs = append(r.errs, syntaxError(file, err))
			break
		}
		if len(root.Content) == 0 || root.Content[0].Tag == "!!null" {
			continue // an empty document between two separators
		}
		if d, ok := r.document(root.Content[0]); ok {
			docs = append(docs, d)
		}
	}
	return docs, errors.Join(r.errs...)
}

var yamlLine = regexp.MustCompile(`^(?:yaml: )?line ([0-9]+): `)

// syntaxError puts the line of a syntax error where all errors have it.
func syntaxError(file string, err error) error {
	text := err.Error()
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		return fmt.Errorf("%s:%s: %s", file, m[1], text[len(m[0]):])
	}
	return fmt.Errorf("%s: %s", file, strings.TrimPrefix(text, "yaml: "))
}

// WithFrom returns the document with its effective_from set to a second.
func (d Document) WithFrom(second int64) (Document, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(d.JSON, &root); err != nil {
		panic("BUG: parse canonical document: " + err.Error())
	}
	top := root.Content[0]
	at := metering.InstantOf(second).String()
	if n := member(top, "effective_from"); n != nil {
		n.Value = at
	} else {
		top.Content = append(top.Content, scalar("effective_from"), scalar(at))
	}
	r := &reader{file: d.At}
	set, ok := r.document(top)
	if !ok {
		return Document{}, errors.Join(r.errs...)
	}
	set.At = d.At
	return set, nil
}

func scalar(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
}

func member(n *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

// reader turns nodes into valid values and collects what is wrong with them.
type reader struct {
	file string
	errs []error
}

func (r *reader) fail(n *yaml.Node, format string, args ...any) {
	at := r.at(n)
	r.errs = append(r.errs, fmt.Errorf("%s: %s", at, fmt.Sprintf(format, args...)))
}

func (r *reader) at(n *yaml.Node) string { return fmt.Sprintf("%s:%d", r.file, n.Line) }

// field is how one member of a mapping is read.
type field struct {
	name     string
	required bool
	read     func(n *yaml.Node)
}

// mapping reads the members of a mapping strictly.
func (r *reader) mapping(n *yaml.Node, what string, fields ...field) {
	if n.Kind != yaml.MappingNode {
		r.fail(n, "%s is not a mapping of names to values", what)
		return
	}
	got := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if got[key.Value] {
			r.fail(key, "%s has %q twice", what, key.Value)
			continue
		}
		got[key.Value] = true
		known := false
		for _, f := range fields {
			if f.name == key.Value {
				known = true
				f.read(value)
			}
		}
		if !known {
			names := make([]string, len(fields))
			for i, f := range fields {
				names[i] = f.name
			}
			r.fail(key, "%s has no field %q; it has %s", what, key.Value, strings.Join(names, ", "))
		}
	}
	for _, f := range fields {
		if f.required && !got[f.name] {
			r.fail(n, "%s needs the field %q", what, f.name)
		}
	}
}

// list calls read for each element of a sequence.
func (r *reader) list(n *yaml.Node, what string, read func(n *yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		r.fail(n, "%s is not a list", what)
		return
	}
	for _, element := range n.Content {
		read(element)
	}
}

// text reads a scalar as it is written: 0.10 stays "0.10".
func (r *reader) text(n *yaml.Node, what string) string {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		r.fail(n, "%s is not a plain value", what)
		return ""
	}
	return n.Value
}

func (r *reader) name(n *yaml.Node, what string) string {
	s := r.text(n, what)
	if !validName(s) {
		r.fail(n, "%s %q is not a name: letters, digits and . _ : / @ + -, at most %d bytes",
			what, s, MaxNameBytes)
	}
	return s
}

func validName(s string) bool {
	for _, c := range s {
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("._:/@+-", c) {
			return false
		}
	}
	return s != "" && len(s) <= MaxNameBytes
}

func (r *reader) instant(n *yaml.Node, what string) metering.Instant {
	i, err := metering.ParseInstant(r.text(n, what))
	if err != nil {
		r.fail(n, "%s: %v", what, err)
	}
	return i
}

var durationPattern = regexp.MustCompile(`^([0-9]{1,7})([smhd])$`)

// duration reads whole seconds: 60s, 90m, 1h, 1d.
func (r *reader) duration(n *yaml.Node, what string) int64 {
	s := r.text(n, what)
	m := durationPattern.FindStringSubmatch(s)
	if m == nil {
		r.fail(n, "%s %q is not a duration such as 60s, 15m, 1h or 1d", what, s)
		return 0
	}
	var number int64
	for _, digit := range m[1] {
		number = number*10 + int64(digit-'0')
	}
	unit := map[string]int64{"s": 1, "m": 60, "h": 3600, "d": 86_400}[m[2]]
	if number*unit > MaxIncrement {
		r.fail(n, "%s %q is longer than 31d", what, s)
	}
	return number * unit
}

// document reads one document of any kind.
func (r *reader) document(n *yaml.Node) (Document, bool) {
	before := len(r.errs)
	r.refuseAliases(n)
	if len(r.errs) > before {
		return Document{}, false
	}
	d := Document{At: r.at(n), From: Always}
	if n.Kind != yaml.MappingNode {
		r.fail(n, "a document is a mapping that begins with its kind: one of %s",
			strings.Join(Kinds, ", "))
		return Document{}, false
	}
	if k := member(n, "kind"); k != nil {
		d.Kind = k.Value
	}
	common := []field{
		{"kind", true, func(*yaml.Node) {}},
		{"name", true, func(v *yaml.Node) { d.Name = r.name(v, "name") }},
		{"effective_from", false, func(v *yaml.Node) {
			d.From, d.Set = r.instant(v, "effective_from").Second(), true
		}},
	}
	r.body(n, common, &d)
	if len(r.errs) > before {
		return Document{}, false
	}
	d.JSON = canonical(nil, n)
	return d, true
}

func (r *reader) refuseAliases(n *yaml.Node) {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		r.fail(n, "anchors and aliases are not allowed: write the value out")
		return
	}
	for _, c := range n.Content {
		r.refuseAliases(c)
	}
}

// body reads a document by its kind.
func (r *reader) body(n *yaml.Node, common []field, d *Document) {
	switch d.Kind {
	case "Calendar":
		d.body = r.calendar(n, common)
	case "PriceBook":
		d.body = r.priceBook(n, common, d)
	case "Seller":
		d.body = r.seller(n, common, d)
	case "Tenant":
		d.body = r.tenant(n, common, d)
	case "Contract":
		d.body = r.contract(n, common)
	case "TaxRule":
		d.body = r.taxRule(n, common, d)
	case "Grant":
		d.body = r.grant(n, common, d)
	case "Budget":
		d.body = r.budget(n, common, d)
	case "Policy":
		d.body = r.policy(n, common, d)
	case "Template":
		d.body = r.template(n, common, d)
	default:
		r.fail(n, "kind %q is none of %s", d.Kind, strings.Join(Kinds, ", "))
	}
}
