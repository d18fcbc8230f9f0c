// Package einvoice checks e-invoices by the official rules of EN 16931 and Peppol, which Maven
// fetches. It needs Java 17 or later and Maven; without them tests are skipped, or fail where
// SUANPAN_TEST_ALL=1 is set.
package einvoice

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The rule sets: XML Schema, EN 16931, Peppol, and what countries add.
const (
	invoiceRules    = "eu.peppol.bis3:invoice:2026.5"
	creditNoteRules = "eu.peppol.bis3:creditnote:2026.5"
)

const (
	fetchTimeout = 10 * time.Minute // once per machine
	checkTimeout = 8 * time.Minute
)

//go:embed pom.xml
var pom []byte

//go:embed Validate.java
var program []byte

// Finding is what the rules have against a document.
type Finding struct{ Level, Rule, Text string }

// Check returns the findings for each of the documents, by name. It starts one Java for all.
func Check(t testing.TB, documents map[string][]byte) map[string][]Finding {
	t.Helper()
	for _, program := range []string{"java", "javac", "mvn"} {
		if _, err := exec.LookPath(program); err != nil {
			missing(t, "e-invoices not checked: %s is not installed", program)
		}
	}
	path, err := fetch()
	if err != nil {
		missing(t, "e-invoices not checked: %v", err)
	}
	dir := t.TempDir()
	names := make(map[string]string)
	args := []string{"-cp", path, "Validate"}
	for name, data := range documents {
		file := filepath.Join(dir, fmt.Sprintf("%d.xml", len(names)))
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		rules := invoiceRules
		if bytes.Contains(data, []byte("<CreditNote ")) {
			rules = creditNoteRules
		}
		names[file] = name
		args = append(args, rules, file)
	}
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "java", args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("check e-invoices: %v\n%s", err, errs.Bytes()[max(0, errs.Len()-4000):])
	}
	findings := make(map[string][]Finding)
	current := ""
	for line := range strings.Lines(string(out)) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3)
		switch {
		case len(parts) == 3 && parts[0] == "checked":
			current = names[parts[1]]
			findings[current] = nil
		case len(parts) == 3 && current != "":
			findings[current] = append(findings[current], Finding{parts[0], parts[1], parts[2]})
		}
	}
	if len(findings) != len(documents) {
		t.Fatalf("%d of %d e-invoices were checked", len(findings), len(documents))
	}
	return findings
}

// missing skips a test, or fails it where everything has to be tested.
func missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("SUANPAN_TEST_ALL") == "1" {
		t.Fatalf(format, args...)
	}
	t.Skipf("SKIPPED, set SUANPAN_TEST_ALL=1 to make this fail: "+format, args...)
}

// fetch returns the class path of the rules and the compiled program. It asks Maven once per
// machine and version.
func fetch() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a cache directory: %w", err)
	}
	sum := sha256.Sum256(append(bytes.Clone(pom), program...))
	parent := filepath.Join(cache, "suanpan", "einvoice")
	ready := filepath.Join(parent, hex.EncodeToString(sum[:8]))
	path := filepath.Join(ready, "jars", "*") + string(os.PathListSeparator) + ready
	if _, err := os.Stat(ready); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("make a cache directory: %w", err)
	}
	work, err := os.MkdirTemp(parent, "fetching-")
	if err != nil {
		return "", fmt.Errorf("make a cache directory: %w", err)
	}
	defer os.RemoveAll(work)
	if err := prepare(work); err != nil {
		return "", err
	}
	if err := os.Rename(work, ready); err != nil {
		if _, err := os.Stat(ready); err == nil {
			return path, nil // another test was faster
		}
		return "", fmt.Errorf("keep what Maven fetched: %w", err)
	}
	return path, nil
}

func prepare(work string) error {
	for name, data := range map[string][]byte{"pom.xml": pom, "Validate.java": program} {
		if err := os.WriteFile(filepath.Join(work, name), data, 0o644); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	jars := filepath.Join(work, "jars")
	for _, args := range [][]string{
		{"mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=" + jars},
		{"javac", "-cp", filepath.Join(jars, "*"), "-d", work, "Validate.java"},
	} {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir = work
		if out, err := cmd.CombinedOutput(); err != nil {
			out = bytes.TrimSpace(out)
			return fmt.Errorf("run %s: %w\n%s", args[0], err, out[max(0, len(out)-2000):])
		}
	}
	return nil
}
