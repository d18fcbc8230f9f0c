package arch

import (
	"slices"
	"strconv"
	"strings"
)

// layers say which parts of the repository each part may import, besides schemas and itself.
// Imports follow the data: events and money at the bottom, services at the top.
var layers = map[string][]string{
	"schemas":        {},
	"pkg/money":      {},
	"pkg/metering":   {},
	"pkg/catalog":    {"pkg/money", "pkg/metering"},
	"pkg/rating":     {"pkg/money", "pkg/metering", "pkg/catalog"},
	"pkg/billing":    {"pkg/money", "pkg/metering", "pkg/catalog", "pkg/rating"},
	"pkg/advice":     {"pkg/money", "pkg/metering", "pkg/catalog", "pkg/rating"},
	"pkg/pipeline":   pure,
	"pkg/kafka":      append([]string{"pkg/pipeline"}, pure...),
	"pkg/clickhouse": append([]string{"pkg/pipeline", "pkg/notify"}, pure...), // it keeps deliveries
	"pkg/nvml":       append([]string{"pkg/pipeline"}, pure...),
	"pkg/notify":     pure,
	"pkg/daemon":     append([]string{"pkg/pipeline"}, pure...),
}

// adapters are the parts that know one technology each.
var adapters = []string{"pkg/kafka", "pkg/clickhouse", "pkg/nvml", "pkg/notify", "pkg/daemon"}

// soleImporters name the one part that may import a library, which hides it from all others.
var soleImporters = []struct{ library, part, reason string }{
	{
		"github.com/shopspring/decimal", "pkg/money",
		"amounts are rounded in one place, so nobody else may calculate with decimals",
	},
	{
		"github.com/segmentio/kafka-go", "pkg/kafka",
		"its defaults lose records (see the package), so one part sets them",
	},
	{
		"github.com/ClickHouse/clickhouse-go", "pkg/clickhouse",
		"retries, versions and deduplication of inserts are that part's secret",
	},
	{
		"github.com/NVIDIA/go-nvml", "pkg/nvml",
		"it needs cgo and a driver, which everything else must build without",
	},
	{
		"github.com/wneessen/go-mail", "pkg/notify",
		"TLS, the end of connections and what errors mean are that part's secret",
	},
}

// Imports finds imports against the direction of the data, and libraries that escaped from the
// part which hides them.
func Imports(module string, sources []*Source) []Finding {
	var findings []Finding
	for _, s := range sources {
		for _, spec := range s.File.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				panic("BUG: the parser let a malformed import pass: " + spec.Path.Value)
			}
			if spec.Name != nil && spec.Name.Name == "." && !s.Test() {
				findings = append(findings, s.finding(spec.Pos(),
					"dot import of %s: a reader cannot see where a name comes from", name))
			}
			reason := ""
			if within, ok := strings.CutPrefix(name, module+"/"); ok {
				reason = wrongWay(s, within)
			} else {
				reason = escaped(s, name)
			}
			if reason != "" {
				findings = append(findings, s.finding(spec.Pos(), "import of %s: %s", name, reason))
			}
		}
	}
	return findings
}

// wrongWay says why a file may not import a package of ours, or "".
func wrongWay(s *Source, target string) string {
	from, to := part(s.Dir()), part(target)
	switch {
	case from == to || to == "schemas":
		return ""
	case strings.HasPrefix(from, "tests"):
		return ""
	case strings.HasPrefix(to, "tests") && s.Test():
		return "" // a harness that several packages' tests share
	case strings.HasPrefix(to, "tests"):
		return "programs must build without their tests"
	case from == "services/suanpan":
		return ""
	case strings.HasPrefix(from, "services/"):
		if strings.HasPrefix(to, "services/") {
			return "services do not know each other; services/suanpan alone puts them together"
		}
		return ""
	case to == "services/embedded" && s.Test() && slices.Contains(adapters, from):
		return "" // an adapter is tested against the real thing
	case strings.HasPrefix(to, "services"):
		return "services are at the top: nothing below them may need one"
	}
	allowed, known := layers[from]
	switch {
	case !known:
		return "unknown part " + from + ": give it a place in layers of tests/arch/imports.go"
	case slices.Contains(allowed, to):
		return ""
	case slices.Contains(adapters, from) && slices.Contains(adapters, to):
		return "adapters never import each other: each hides one technology, " +
			"and services put them together"
	default:
		return "imports go one way (money, metering <- catalog <- rating <- billing, advice " +
			"<- pipeline <- adapters <- services), so " + from + " must not know " + to
	}
}

// escaped says why a file may not import a library, or "".
func escaped(s *Source, library string) string {
	from := part(s.Dir())
	for _, sole := range soleImporters {
		if library != sole.library && !strings.HasPrefix(library, sole.library+"/") {
			continue
		}
		// What checks a server may talk to it directly.
		raw := s.Test() && from == "services/embedded" || strings.HasPrefix(from, "tests")
		if from != sole.part && !raw {
			return "only " + sole.part + " may: " + sole.reason
		}
	}
	return ""
}

// Parts finds packages that have no place in the repository's order yet.
func Parts(sources []*Source) []Finding {
	var findings []Finding
	for _, s := range sources {
		in := part(s.Dir())
		if _, known := layers[in]; !known && strings.HasPrefix(in, "pkg") {
			findings = append(findings, Finding{File: s.Path, Reason: "unknown part " + in +
				": a new package needs a secret to hide and a place in tests/arch/imports.go"})
		}
	}
	return findings
}
