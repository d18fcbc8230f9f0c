package fonts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/suanpan/suanpan/pkg/billing/billingtest"
	"github.com/suanpan/suanpan/pkg/billing/pdf"
)

func TestFontThatIsFoundRendersDocuments(t *testing.T) {
	font, err := Find()
	if err != nil {
		if os.Getenv(Variable) != "" {
			t.Fatal(err)
		}
		t.Skipf("no font here: %v", err)
	}
	if _, err := pdf.Render(billingtest.Chinese(), font); err != nil {
		t.Error(err)
	}
}

func TestNamedFontIsTheOneOrAnError(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.ttf")
	if err := os.WriteFile(text, []byte("this is no font at all"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none.ttf"): "no such file",
		text:                           "no TrueType font",
		dir:                            "it is no file",
	} {
		t.Setenv(Variable, path)
		_, err := Find()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", path, err, want)
			continue
		}
		for _, word := range []string{Variable, "fonts-wqy-microhei", "font.sh"} {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s: the error does not say how to mend it: %v", path, err)
			}
		}
	}
}

func TestFontsThatAreNotThereOrNotFit(t *testing.T) {
	dir := t.TempDir()
	none := filepath.Join(dir, "none.ttc")
	if _, err := first([]string{none}); err == nil || !strings.Contains(err.Error(), remedy) {
		t.Errorf("error %v, want one that says how to mend it", err)
	}
	broken := filepath.Join(dir, "broken.ttc")
	if err := os.WriteFile(broken, []byte("ttcf"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := first([]string{none, broken})
	if err == nil || !strings.Contains(err.Error(), broken) {
		t.Errorf("error %v, want one that names the broken file", err)
	}
}
