package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// event turns a line into a CloudEvent. Its id is the word after the verb.
func (p *parser) event(words []string) error {
	verbs := map[string]struct {
		typ    string
		fields []string
	}{
		"usage":    {"suanpan.usage.held.v1", []string{"tenant", "session", "start", "end"}},
		"void":     {"suanpan.usage.void.v1", []string{"tenant", "session", "start", "end"}},
		"consumed": {"suanpan.usage.consumed.v1", []string{"tenant", "time"}},
		"price":    {"suanpan.market.price.v1", []string{"sku", "region", "time", "price"}},
		"close":    {"suanpan.period.close.v1", []string{"tenant", "until"}},
	}
	verb, ok := verbs[words[0]]
	if !ok {
		return fmt.Errorf("%q is none of catalog, usage, void, consumed, price, close, bill, invoice, "+
			"credit-note, refused, tick", words[0])
	}
	if len(words) < 2+len(verb.fields) {
		return fmt.Errorf("%s needs an id, %s", words[0], strings.Join(verb.fields, ", "))
	}
	data := map[string]string{}
	for i, name := range verb.fields {
		data[name] = quoted(words[2+i])
	}
	var amounts, labels []string
	for _, word := range words[2+len(verb.fields):] {
		name, value, ok := strings.Cut(word, "=")
		switch {
		case !ok:
			return fmt.Errorf("%q is not NAME=VALUE", word)
		case name == "resumed":
			data[name] = value
		case slices.Contains([]string{
			"project", "lease", "session_start", "purchase", "region", "contract",
		}, name):
			data[name] = quoted(value)
		case slices.Contains([]string{"team", "model", "model_version", "stage"}, name):
			labels = append(labels, quoted(name)+":"+quoted(value))
		default:
			amounts = append(amounts, quoted(name)+":"+quoted(value))
		}
	}
	complete(words[0], data, amounts)
	if labels != nil {
		data["labels"] = "{" + strings.Join(labels, ",") + "}"
	}
	var members []string
	for _, name := range slices.Sorted(maps.Keys(data)) {
		members = append(members, quoted(name)+":"+data[name])
	}
	p.script.Events = append(p.script.Events, fmt.Sprintf(
		`{"specversion":"1.0","type":%q,"source":"/scenario","id":%q,"data":{%s}}`, verb.typ, words[1],
		strings.Join(members, ",")))
	return nil
}

// complete sets what a line need not say.
func complete(verb string, data map[string]string, amounts []string) {
	preset := func(name, value string) {
		if _, ok := data[name]; !ok {
			data[name] = value
		}
	}
	switch verb {
	case "usage":
		preset("project", `"p"`)
		preset("lease", data["session"])
		preset("session_start", data["start"])
		preset("purchase", `"on_demand"`)
		data["held"] = "{" + strings.Join(amounts, ",") + "}"
	case "consumed":
		preset("project", `"p"`)
		data["consumed"] = "{" + strings.Join(amounts, ",") + "}"
	case "close":
		preset("from", `"2000-01-01T00:00:00Z"`)
	case "void":
		preset("reason", `"scenario"`)
		preset("by", `"scenario"`)
	}
}

func quoted(s string) string { return `"` + s + `"` }
