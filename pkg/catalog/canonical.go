package catalog

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// canonical appends the JSON form of a valid document: members in the order of their names, every
// scalar as a string with its text, so that no decimal passes through a number.
func canonical(out []byte, n *yaml.Node) []byte {
	switch n.Kind {
	case yaml.MappingNode:
		type pair struct{ key, value *yaml.Node }
		var pairs []pair
		for i := 0; i+1 < len(n.Content); i += 2 {
			pairs = append(pairs, pair{n.Content[i], n.Content[i+1]})
		}
		slices.SortFunc(pairs, func(a, b pair) int { return strings.Compare(a.key.Value, b.key.Value) })
		out = append(out, '{')
		for i, p := range pairs {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(appendString(out, p.key.Value), ':')
			out = canonical(out, p.value)
		}
		return append(out, '}')
	case yaml.SequenceNode:
		out = append(out, '[')
		for i, element := range n.Content {
			if i > 0 {
				out = append(out, ',')
			}
			out = canonical(out, element)
		}
		return append(out, ']')
	case yaml.DocumentNode, yaml.ScalarNode, yaml.AliasNode:
		return appendString(out, n.Value)
	}
	panic("BUG: unknown kind of YAML node")
}

func appendString(out []byte, s string) []byte {
	out, err := jsontext.AppendQuote(out, s)
	if err != nil {
		panic("BUG: quote a string of valid YAML: " + err.Error())
	}
	return out
}
