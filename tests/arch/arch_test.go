package arch

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// root is where the repository begins, seen from this package.
const root = "../.."

// module is the path by which the repository's packages are imported.
const module = "github.com/suanpan/suanpan"

// TestRepository holds every file of the repository against every rule.
func TestRepository(t *testing.T) {
	sources, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(sources) < 10 {
		t.Fatalf("found %d Go files below %s: not the repository", len(sources), root)
	}
	rules := map[string]func() []Finding{
		"imports": func() []Finding { return Imports(module, sources) },
		"parts":   func() []Finding { return Parts(sources) },
		"pure":    func() []Finding { return Pure(sources) },
		"docs":    func() []Finding { return Docs(sources) },
		"size":    func() []Finding { return Size(sources) },
		"names":   func() []Finding { return Names(sources) },
		"text":    func() []Finding { return texts(t) },
	}
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			for _, f := range rule() {
				t.Error(f)
			}
		})
	}
}

// texts checks all files that are committed or could be.
func texts(t *testing.T) []Finding {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "-C", root,
		"ls-files", "--cached", "--others", "--exclude-standard", "-z")
	out, err := list.Output()
	if err != nil {
		t.Fatalf("list files with git: %v", err)
	}
	names := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	if !slices.Contains(names, "go.mod") {
		t.Fatalf("git lists %d files, go.mod is not among them", len(names))
	}
	var findings []Finding
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if os.IsNotExist(err) { // deleted, not committed yet
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		findings = append(findings, Text(name, string(text))...)
	}
	return findings
}

// TestModule keeps the module's path here and in go.mod the same: with another one, no import of
// ours would be checked.
func TestModule(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(text), "module "+module+"\n") {
		t.Errorf("go.mod is not of module %s", module)
	}
}

// parse parses a sample.
func parse(t *testing.T, name, text string) *Source {
	t.Helper()
	s, err := Parse(name, text)
	if err != nil {
		t.Fatalf("a sample does not parse: %v\n%s", err, text)
	}
	return s
}

// expect compares findings with what each must contain, in order.
func expect(t *testing.T, sample string, findings []Finding, want ...string) {
	t.Helper()
	var got []string
	for _, f := range findings {
		got = append(got, f.String())
	}
	if len(got) != len(want) {
		t.Errorf("%s: found %q, want %d findings %q", sample, got, len(want), want)
		return
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("%s: found %q, want %q in it", sample, got[i], want[i])
		}
	}
}

func TestImports_direction(t *testing.T) {
	f := func(file, target, want string) {
		t.Helper()
		s := parse(t, file, "package p\n\nimport _ \""+target+"\"\n")
		findings := Imports(module, []*Source{s})
		if want == "" {
			expect(t, file+" -> "+target, findings)
			return
		}
		expect(t, file+" -> "+target, findings, file+":3: import of "+target+": "+want)
	}
	const ours = module + "/"
	// Along the data.
	f("pkg/catalog/a.go", ours+"pkg/money", "")
	f("pkg/rating/a.go", ours+"pkg/catalog", "")
	f("pkg/billing/a.go", ours+"pkg/rating", "")
	f("pkg/pipeline/a.go", ours+"pkg/rating", "")
	f("pkg/kafka/a.go", ours+"pkg/pipeline", "")
	f("pkg/kafka/internal/x/a.go", ours+"pkg/kafka", "")
	f("pkg/money/a.go", ours+"schemas", "")
	f("services/rater/a.go", ours+"pkg/kafka", "")
	f("services/suanpan/a.go", ours+"services/rater", "")
	f("tests/sim/a.go", ours+"services/rater", "")
	f("pkg/kafka/a_test.go", ours+"services/embedded/kafka", "")
	f("pkg/kafka/a_test.go", ours+"tests/kafkatest", "")
	// Against it.
	f("pkg/money/a.go", ours+"pkg/metering", "imports go one way")
	f("pkg/metering/a.go", ours+"pkg/money", "imports go one way")
	f("pkg/catalog/a.go", ours+"pkg/rating", "imports go one way")
	f("pkg/rating/a.go", ours+"pkg/billing", "imports go one way")
	f("pkg/billing/a.go", ours+"pkg/advice", "imports go one way")
	f("pkg/rating/a_test.go", ours+"pkg/pipeline", "imports go one way")
	f("pkg/pipeline/a.go", ours+"pkg/kafka", "imports go one way")
	f("pkg/pipeline/a_test.go", ours+"services/embedded/kafka", "services are at the top")
	f("pkg/kafka/a.go", ours+"pkg/clickhouse", "adapters never import each other")
	f("pkg/kafka/a_test.go", ours+"pkg/clickhouse", "adapters never import each other")
	f("pkg/clickhouse/a.go", ours+"pkg/daemon", "adapters never import each other")
	f("pkg/daemon/a.go", ours+"pkg/nvml", "adapters never import each other")
	f("pkg/kafka/a.go", ours+"services/embedded/kafka", "services are at the top")
	f("schemas/a.go", ours+"pkg/money", "imports go one way")
	f("services/rater/a.go", ours+"services/archiver", "services do not know each other")
	f("services/rater/a.go", ours+"tests/sim", "programs must build without their tests")
	f("pkg/money/a.go", ours+"tests/golden", "programs must build without their tests")
	f("pkg/shiny/a.go", ours+"pkg/money", "unknown part pkg/shiny")
}

func TestImports_soleImporters(t *testing.T) {
	f := func(file, library string, ok bool) {
		t.Helper()
		s := parse(t, file, "package p\n\nimport _ \""+library+"\"\n")
		findings := Imports(module, []*Source{s})
		if ok {
			expect(t, file+" -> "+library, findings)
			return
		}
		expect(t, file+" -> "+library, findings, file+":3: import of "+library+": only pkg/")
	}
	f("pkg/money/a.go", "github.com/shopspring/decimal", true)
	f("pkg/kafka/a.go", "github.com/segmentio/kafka-go/compress", true)
	f("pkg/clickhouse/a.go", "github.com/ClickHouse/clickhouse-go/v2", true)
	f("pkg/nvml/a.go", "github.com/NVIDIA/go-nvml/pkg/nvml", true)
	f("tests/e2e/a_test.go", "github.com/segmentio/kafka-go", true)
	f("services/embedded/kafka/a_test.go", "github.com/segmentio/kafka-go", true)
	f("pkg/money/a.go", "github.com/shopspring/decimalish", true)
	f("pkg/rating/a.go", "github.com/shopspring/decimal", false)
	f("pkg/rating/a_test.go", "github.com/shopspring/decimal", false)
	f("services/rater/a.go", "github.com/segmentio/kafka-go", false)
	f("services/embedded/kafka/a.go", "github.com/segmentio/kafka-go/sasl", false)
	f("pkg/pipeline/a.go", "github.com/ClickHouse/clickhouse-go/v2", false)
	f("services/exporter/a.go", "github.com/NVIDIA/go-nvml/pkg/nvml", false)
}

func TestImports_dotImport(t *testing.T) {
	text := "package p\n\nimport . \"fmt\"\n"
	code := parse(t, "pkg/money/a.go", text)
	expect(t, "code", Imports(module, []*Source{code}), "dot import of fmt")
	expect(t, "test", Imports(module, []*Source{parse(t, "pkg/money/a_test.go", text)}))
}

func TestParts_unknownPackage(t *testing.T) {
	good := parse(t, "pkg/money/a.go", "package money\n")
	bad := parse(t, "pkg/shiny/a.go", "package shiny\n")
	expect(t, "parts", Parts([]*Source{good, bad}), "pkg/shiny/a.go: unknown part pkg/shiny")
}

func TestPure_effects(t *testing.T) {
	f := func(code string, want ...string) {
		t.Helper()
		expect(t, code, Pure([]*Source{parse(t, "pkg/rating/a.go", "package rating\n"+code)}), want...)
		// Elsewhere, and in tests, the same is allowed.
		expect(t, code, Pure([]*Source{parse(t, "pkg/kafka/a.go", "package kafka\n"+code)}))
		expect(t, code, Pure([]*Source{parse(t, "pkg/rating/a_test.go", "package rating\n"+code)}))
	}
	for _, library := range []string{
		"os", "os/signal", "net", "net/http", "log", "log/slog", "syscall", "io/ioutil",
		"math/rand", "math/rand/v2", "crypto/rand", "database/sql", "runtime",
	} {
		f("import _ \""+library+"\"", "pkg/rating/a.go:2: import of "+library+": pure code")
	}
	f(`import "time"; var d = time.Second`)
	f(`import "time"; var t = time.Now()`, "time.Now: pure code reads no clock")
	f(`import clock "time"; var t = clock.Now()`, "time.Now: pure code reads no clock")
	f(`import "time"; func f(t time.Time) { time.Since(t); time.Sleep(1) }`,
		"time.Since", "time.Sleep")
	f(`import "time"; var c, l = time.After, time.Local`, "time.After", "time.Local")
	f(`import "fmt"; var s = fmt.Sprint(1)`)
	f(`import "fmt"; func f() { fmt.Println(1) }`, "fmt.Println: pure code does no I/O")
	f(`func f() { println(1) }`, "println: pure code does no I/O")
	f(`func f() { go f() }`, "a.go:2: go statement: pure code starts no goroutine")
	f(`type t struct{ Now func() }; func f(time t) { time.Now() }`)
}

func TestPure_floats(t *testing.T) {
	f := func(code string, want ...string) {
		t.Helper()
		for _, dir := range []string{"money", "metering", "catalog", "rating", "pipeline"} {
			s := parse(t, "pkg/"+dir+"/a.go", "package p\n"+code)
			expect(t, dir+" "+code, Pure([]*Source{s}), want...)
		}
		expect(t, code, Pure([]*Source{parse(t, "pkg/daemon/a.go", "package p\n"+code)}))
	}
	f(`var a int64 = 1_000`)
	f(`import "math"; const m = math.MaxInt64`)
	f(`var a float64`, "float64: no float touches")
	f(`func f(a []float32) {}`, "float32: no float touches")
	f(`var a = 0.5`, "literal 0.5: no float touches")
	f(`const n = 1e9`, "literal 1e9: no float touches")
	f(`import "math"; func f() { _ = math.Sqrt(2) }`, "Sqrt: no float touches")
	f(`import "strconv"; func f() { strconv.ParseFloat("1", 64) }`, "ParseFloat: no float")
	f(`func f(d interface{ InexactFloat() }) { d.InexactFloat() }`, "InexactFloat: no float")
}

func TestDocs_packageComment(t *testing.T) {
	f := func(texts []string, want ...string) {
		t.Helper()
		var sources []*Source
		for i, text := range texts {
			sources = append(sources, parse(t, "pkg/p/"+string(rune('a'+i))+".go", text))
		}
		expect(t, strings.Join(texts, "|"), Docs(sources), want...)
	}
	f([]string{"// Package p hides.\npackage p\n", "package p\n"})
	f([]string{"package p\n", "package p\n"}, "pkg/p/a.go: package pkg/p has no comment")
	f([]string{"// Detached.\n\npackage p\n"}, "has no comment")
	f([]string{"// Package p.\npackage p\n", "// Also.\npackage p\n"},
		"pkg/p/b.go: package pkg/p has a second comment")
	expect(t, "test", Docs([]*Source{parse(t, "pkg/p/a_test.go", "package p\n")}))
}

func TestDocs_exportedNames(t *testing.T) {
	f := func(code string, want ...string) {
		t.Helper()
		text := "// Package p hides.\npackage p\n\n" + code + "\n"
		expect(t, code, Docs([]*Source{parse(t, "pkg/p/a.go", text)}), want...)
	}
	f("func F() {}", "F has no comment")
	f("// F does.\nfunc F() {}")
	f("func f() {}")
	f("// Too far away.\n\nfunc F() {}", "F has no comment")
	f("type T int", "T has no comment")
	f("type t int\n\nfunc (t) M() {}")
	f("// T is.\ntype T int\n\nfunc (*T) M() {}", "M has no comment")
	f("// T is.\ntype T[A any] struct{}\n\nfunc (*T[A]) M() {}", "M has no comment")
	f("var A, B int", "A has no comment", "B has no comment")
	f("// These are.\nvar (\n\tA = 1\n\tB = 2\n)")
	f("const (\n\tA = 1 // one\n\tB = 2\n)", "B has no comment")
	f("// Code generated by x. DO NOT EDIT.\n\nfunc F() {}")
}

func TestSize_functions(t *testing.T) {
	function := func(lines int) string {
		return "package p\n\nfunc f() {\n" + strings.Repeat("\tf()\n", lines-2) + "}\n"
	}
	f := func(file string, lines int, want ...string) {
		t.Helper()
		expect(t, file, Size([]*Source{parse(t, file, function(lines))}), want...)
	}
	f("pkg/p/a.go", 70)
	f("pkg/p/a.go", 71, "pkg/p/a.go:3: f has 71 lines, at most 70")
	f("pkg/p/a_test.go", 71)
}

func TestSize_files(t *testing.T) {
	f := func(file string, lines int, want ...string) {
		t.Helper()
		text := "package p\n" + strings.Repeat("\n", lines-1)
		expect(t, file, Size([]*Source{parse(t, file, text)}), want...)
	}
	f("pkg/p/a.go", 400)
	f("pkg/p/a.go", 401, "pkg/p/a.go: file of 401 lines, at most 400")
	f("pkg/p/a_test.go", 401)
}

func TestSize_lines(t *testing.T) {
	f := func(file, line string, want ...string) {
		t.Helper()
		text := "package p\n\n" + line + "\n"
		expect(t, file+" "+line, Size([]*Source{parse(t, file, text)}), want...)
	}
	long := func(text string) string {
		return text + strings.Repeat("x", 101-len([]rune(text)))
	}
	f("pkg/p/a.go", long("// ")[:100])
	f("pkg/p/a.go", long("// "), "pkg/p/a.go:3: line of 101 columns, at most 100")
	f("pkg/p/a_test.go", long("// "), "line of 101 columns")
	f("pkg/p/a.go", long("// 账单"), "line of 101 columns")
	f("pkg/p/a.go", "// "+strings.Repeat("账", 97))
	f("pkg/p/a.go", long("// see https://go.dev/"))
	f("pkg/p/a_test.go", long(`// {"tenant":"`))
	f("pkg/p/a.go", long(`// {"tenant":"`), "line of 101 columns")
	f("pkg/p/a.go", "// Code generated by x. DO NOT EDIT.\n"+long("// "))
}

func TestNames(t *testing.T) {
	f := func(file, name string, want ...string) {
		t.Helper()
		expect(t, file, Names([]*Source{parse(t, file, "package "+name+"\n")}), want...)
	}
	f("pkg/money/a.go", "money")
	f("pkg/money/a_test.go", "money_test")
	f("services/suanpan/a.go", "main")
	f("pkg/util/a.go", "util", "pkg/util/a.go:1: package util: the name says nothing")
	f("pkg/helpers/a_test.go", "helpers_test", "package helpers")
	f("services/common/a.go", "main", "package common")
	f("pkg/kafka/internal/types/a.go", "types", "package types")
	f("pkg/p/a.go", "priceBook", "package priceBook: one lower-case noun")
	f("pkg/p/a.go", "price_book", "package price_book: one lower-case noun")
}

func TestText(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		expect(t, text, Text("README.md", text), want...)
	}
	const work = "/wo" + "rk/"
	const later = "TO" + "DO"
	f("a\nsee https://example.com" + work + "x and ./src" + work)
	f("a\nls "+work+"main", "README.md:2: "+work+": a path of one machine")
	f(work+"main", "README.md:1:")
	f("// "+later+": more\n", later+": unfinished work")
	f("\n// FIX"+"ME\n", "README.md:2: FIX"+"ME: unfinished work")
	f("METHOD AUTODOC " + later + "S")
	f("\x00binary " + work)
	expect(t, "go.sum", Text("go.sum", later))
}

func TestLoad_skipsWhatIsNotOurs(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.go": "package p\n", "x/b_test.go": "package x\n", "x/notes.md": "no Go",
		"x/testdata/bad.go": "not Go", "node_modules/c.go": "not Go", ".cache/d.go": "not Go",
	} {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sources, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range sources {
		got = append(got, s.Path)
	}
	if diff := cmp.Diff([]string{"a.go", "x/b_test.go"}, got); diff != "" {
		t.Errorf("loaded (-want +got):\n%s", diff)
	}
	if err := os.WriteFile(filepath.Join(dir, "bad.go"), []byte("not Go"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); err == nil {
		t.Error("a file that does not parse was passed over")
	}
}
