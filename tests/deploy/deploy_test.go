package deploy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// root is where the repository begins, seen from this package.
const root = "../.."

// exists reports whether a path of the repository is there.
func exists(path string) bool {
	_, err := os.Stat(filepath.Join(root, filepath.FromSlash(path)))
	return err == nil
}

// read returns the text of a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// files lists the files below a folder of the repository whose names end in one of the endings.
func files(t *testing.T, dir string, endings ...string) []string {
	t.Helper()
	var found []string
	err := fs.WalkDir(os.DirFS(root), dir, func(path string, _ fs.DirEntry, err error) error {
		if slices.Contains(endings, filepath.Ext(path)) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// parses returns why a YAML or JSON text does not parse, or nil.
func parses(name, text string) error {
	if filepath.Ext(name) == ".json" {
		var value any
		return json.Unmarshal([]byte(text), &value)
	}
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for n := 0; ; n++ {
		var value any
		switch err := decoder.Decode(&value); {
		case errors.Is(err, io.EOF) && n > 0:
			return nil
		case err != nil:
			return fmt.Errorf("document %d: %w", n+1, err)
		}
	}
}

func TestFiles_parse(t *testing.T) {
	names := append(files(t, "deployments", ".yml", ".yaml", ".json"),
		"docker-compose.yml", ".golangci.yml")
	if len(names) < 6 {
		t.Errorf("found only %q", names)
	}
	for _, name := range names {
		if err := parses(name, read(t, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParses_refusesBadSamples(t *testing.T) {
	for name, text := range map[string]string{
		"a.yml": "a: [1\n", "b.yml": "a: 1\na: 2\n", "c.yml": "", "d.json": "{", "e.json": "",
		"f.yml": "a: 1\n---\nb: {\n",
	} {
		if parses(name, text) == nil {
			t.Errorf("%s passes: %q", name, text)
		}
	}
}

func TestCompose(t *testing.T) {
	compose, err := ParseCompose(read(t, "docker-compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range compose.Problems(exists) {
		t.Error(problem)
	}
	for _, name := range []string{"kafka", "clickhouse", "archiver", "rater", "settler", "biller", "apply"} {
		if _, ok := compose.Services[name]; !ok {
			t.Errorf("no service %s", name)
		}
	}
}

func TestCompose_problemsOfBadSamples(t *testing.T) {
	f := func(service, want string) {
		t.Helper()
		compose, err := ParseCompose("services:\n  once: {image: 'a:1', restart: 'no'}\n" +
			"  x: {" + service + "}\nvolumes: {data: }\n")
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(compose.Problems(func(path string) bool { return path == "there" }), "|")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: found %q, want %q", service, got, want)
		}
	}
	const fine = "image: 'a:1', healthcheck: {test: [CMD, a]}"
	f(fine+", volumes: ['./there:/a', 'data:/b'], ports: ['127.0.0.1:1:1']"+
		", depends_on: {once: {condition: service_completed_successfully}}", "")
	f("image: a, healthcheck: {test: [CMD, a]}", "x: image \"a\" has no version")
	f("image: 'a:latest', healthcheck: {test: [CMD, a]}", "has no version")
	f("image: 'a:1'", "x: no health check")
	f(fine+", build: {dockerfile: nowhere}", `x: no Dockerfile "nowhere"`)
	f(fine+", volumes: ['./nowhere:/a']", `x: no file or folder "./nowhere"`)
	f(fine+", volumes: ['cache:/a']", `x: no volume "cache"`)
	f(fine+", ports: ['8123:8123']", "x: port 8123:8123 is open")
	f(fine+", depends_on: {y: {}}", "x waits for y: there is none")
	f(fine+", depends_on: {once: {condition: service_healthy}}", "it has no health check")
	f(fine+", depends_on: {x: {condition: service_completed_successfully}}", "restarted for ever")
	if _, err := ParseCompose("services: {}\n"); err == nil {
		t.Error("a compose file without services passes")
	}
}

func TestDockerfile(t *testing.T) {
	text := read(t, "deployments/docker/Dockerfile")
	for _, problem := range DockerfileProblems(text, exists) {
		t.Error(problem)
	}
	version, ok := strings.CutPrefix(goDirective(t), "go ")
	minor := strings.Join(strings.Split(version, ".")[:2], ".")
	if !ok || !strings.Contains(text, "FROM golang:"+minor) {
		t.Errorf("the image does not build with Go %s, which go.mod asks for", minor)
	}
}

// goDirective returns the line of go.mod that names Go's version.
func goDirective(t *testing.T) string {
	t.Helper()
	for line := range strings.Lines(read(t, "go.mod")) {
		if strings.HasPrefix(line, "go ") {
			return strings.TrimSpace(line)
		}
	}
	t.Fatal("go.mod names no version of Go")
	return ""
}

func TestDockerfile_problemsOfBadSamples(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		there := func(path string) bool { return path == "there" }
		got := strings.Join(DockerfileProblems(text, there), "|")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: found %q, want %q", text, got, want)
		}
	}
	f("FROM a:1\n# note\nCOPY there \\\n  there /\nUSER 10\n", "")
	f("FROM a:1\n", "runs as root")
	f("FROM a:1\nUSER 10\nFROM b:1\n", "runs as root")
	f("FROM a\nUSER 10\n", "image a has no version")
	f("FROM a:1\nCOPY nowhere /\nUSER 10\n", "no file nowhere")
	f("FROM a:1\nCOPPY there /\nUSER 10\n", "unknown instruction COPPY")
}

// build builds the command and returns its path.
func build(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "suanpan")
	command := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./services/suanpan")
	command.Dir = root
	if text, err := command.CombinedOutput(); err != nil {
		t.Fatalf("build the command: %v\n%s", err, text)
	}
	return bin
}

// TestCatalog lets the command read the example catalog that compose applies.
func TestCatalog(t *testing.T) {
	command := exec.CommandContext(t.Context(), build(t),
		"rate", "--catalog", filepath.Join(root, "deployments", "example", "catalog.yaml"),
		"--events", "-")
	if text, err := command.CombinedOutput(); err != nil || len(text) > 0 {
		t.Errorf("read the catalog: %v\n%s", err, text)
	}
}

// TestSettings builds the command and asks it whether it knows what the compose file gives it.
func TestSettings(t *testing.T) {
	compose, err := ParseCompose(read(t, "docker-compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	bin := build(t)
	uses := compose.Uses()
	if len(uses) < 4 {
		t.Errorf("found only the commands %+v", uses)
	}
	for _, u := range uses {
		t.Run(u.Command, func(t *testing.T) {
			help, err := exec.CommandContext(t.Context(), bin, u.Command, "--help").CombinedOutput()
			if bytes.Contains(help, []byte("unknown command")) {
				t.Skipf("services/suanpan has no command %s yet", u.Command)
			}
			if err != nil || !bytes.Contains(help, []byte("suanpan "+u.Command)) {
				t.Fatalf("help for %s: %v\n%s", u.Command, err, help)
			}
			for _, unknown := range u.Unknown(string(help)) {
				t.Errorf("unknown setting: %s", unknown)
			}
		})
	}
}

func TestUses(t *testing.T) {
	compose, err := ParseCompose(`services:
  x:
    build: {context: .}
    command: [apply, -f, /catalog, --kafka=a:1, --wait]
    environment: {SUANPAN_LOG_FORMAT: json, SUANPAN_PASSWORD: a, OTHER: b}
  kafka: {command: [a, --b], environment: {SUANPAN_NOT_OURS: c}}
`)
	if err != nil {
		t.Fatal(err)
	}
	uses := compose.Uses()
	want := []Uses{{
		"apply",
		[]string{"-f", "--kafka", "--wait"},
		[]string{"SUANPAN_LOG_FORMAT", "SUANPAN_PASSWORD"},
	}}
	if diff := cmp.Diff(want, uses); diff != "" {
		t.Fatalf("uses (-want +got):\n%s", diff)
	}
	help := "Flags:\n  -f, --file string   what\n      --kafka string\n      --log-format string\n"
	got := uses[0].Unknown(help)
	if diff := cmp.Diff([]string{"apply --wait", "apply SUANPAN_PASSWORD"}, got); diff != "" {
		t.Errorf("unknown (-want +got):\n%s", diff)
	}
	if got := uses[0].Unknown(help + "      --password-file file\n      --wait\n"); len(got) > 0 {
		t.Errorf("unknown: %q, though the help has all", got)
	}
}

// TestMetrics compares the metrics of alerts and dashboards with the names in the code.
func TestMetrics(t *testing.T) {
	var code strings.Builder
	for _, dir := range []string{"pkg", "services"} {
		for _, name := range files(t, dir, ".go") {
			if !strings.HasSuffix(name, "_test.go") {
				code.WriteString(read(t, name))
			}
		}
	}
	counted := Metrics(code.String())
	if !slices.Contains(counted, "suanpan_rater_events_total") {
		t.Skip("services have no metrics yet")
	}
	names := append(files(t, "deployments/prometheus", ".yml"),
		files(t, "deployments/grafana", ".json")...)
	used := 0
	for _, name := range names {
		for _, m := range Metrics(read(t, name)) {
			used++
			if !slices.Contains(counted, m) {
				t.Errorf("%s uses %s, which nothing counts", name, m)
			}
		}
	}
	if used < 8 {
		t.Errorf("found only %d uses of metrics", used)
	}
}

func TestMetrics_ofText(t *testing.T) {
	got := Metrics(`rate(suanpan_rater_flush_seconds_bucket{le="1"}[5m]) + suanpan_rater_lag_records` +
		` + suanpan_rater_flush_seconds_sum + go_goroutines + suanpan`)
	want := []string{"suanpan_rater_flush_seconds", "suanpan_rater_lag_records"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}
