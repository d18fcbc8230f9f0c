package audit

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRate_examples holds the auditor against the examples of an independent exact reference,
// which are no part of the repository.
func TestRate_examples(t *testing.T) {
	const root = "../../../shared/examples"
	folders, err := filepath.Glob(filepath.Join(root, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(folders) == 0 {
		if os.Getenv("SUANPAN_TEST_ALL") != "" {
			t.Fatalf("no examples in %s: SUANPAN_TEST_ALL demands them", root)
		}
		t.Skipf("optional: no examples in %s; the auditor is not compared with the reference", root)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			csv, rejected, err := Rate(read(t, folder, "catalog.yaml"),
				bytes.Split(read(t, folder, "events.jsonl"), []byte("\n")))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(read(t, folder, "expected.csv")), csv); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
			want := ""
			if _, err := os.Stat(filepath.Join(folder, "rejected.txt")); err == nil {
				want = string(read(t, folder, "rejected.txt"))
			}
			var got strings.Builder
			for _, line := range rejected {
				got.WriteString("rejected " + line + "\n")
			}
			if diff := cmp.Diff(want, got.String()); diff != "" {
				t.Errorf("rejected (-want +got):\n%s", diff)
			}
		})
	}
}

func read(t *testing.T, folder, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
