package html

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/billingtest"
	"github.com/suanpan/suanpan/pkg/billing/view"
)

var update = flag.Bool("update", false, "write the golden files anew")

// samples are the shared ones, the longest of which is cut to what a reviewer reads.
func samples() map[string]*billing.Document {
	all := billingtest.Samples()
	all["many"] = billingtest.Many(12)
	return all
}

// render makes a page.
func render(t *testing.T, d *billing.Document) []byte {
	t.Helper()
	out, err := Render(d)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRenderingsAreTheGoldenOnes(t *testing.T) {
	all := samples()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		got := render(t, all[name])
		// The style is a file of its own: a change of it need not change every golden.
		got = bytes.Replace(got, []byte(style), []byte("\n"), 1)
		got = bytes.Replace(got, []byte(escaped(policy())), []byte("POLICY"), 1)
		path := filepath.Join("testdata", name+".html")
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatalf("%v (go test -update writes it)", err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s differs from its golden (-want +got):\n%s", name, diff)
		}
	}
}

// escaped returns a text as the page's attributes have it.
func escaped(text string) string {
	return strings.NewReplacer("'", "&#39;", "+", "&#43;").Replace(text)
}

func TestPagesSayWhatTheDocumentSays(t *testing.T) {
	for name, d := range billingtest.Samples() {
		got := string(render(t, d))
		want := []string{
			d.Number, d.IssueDate, d.DueDate, d.PeriodStart, d.PeriodEnd, view.Group(d.Subtotal),
			d.Currency + " " + view.Group(d.Total), d.Currency + " " + view.Group(d.Due),
			d.Proof.RowsSHA256,
		}
		for _, l := range d.Lines {
			want = append(want, l.SKU, view.Group(l.Amount))
			for _, s := range slices.Concat(l.Breakdown.Stages, l.Breakdown.Teams) {
				want = append(want, ">"+view.Group(s.Amount)+"<")
			}
			for _, detail := range l.Details {
				want = append(want, detail.SKU, view.Group(detail.Amount))
			}
		}
		for _, x := range d.Taxes {
			want = append(want, view.Group(x.Taxable), view.Group(x.Tax), x.Reason, x.ReasonCode)
		}
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: the page does not say %q", name, w)
			}
		}
	}
}

func TestTitlesByLanguage(t *testing.T) {
	draft := billingtest.Chinese()
	draft.Number = ""
	for _, c := range []struct {
		d     *billing.Document
		wants []string
	}{
		{billingtest.Plain(), []string{`<html lang="en">`, "<h1>Invoice</h1>"}},
		{billingtest.CreditNote(), []string{"<h1>Credit note</h1>", "Amount credited"}},
		{billingtest.Draft(), []string{"<h1>Invoice</h1>", `<strong class="draft">Draft</strong>`}},
		{billingtest.Chinese(), []string{`<html lang="zh-CN">`, "<h1>账单</h1>", "应付金额"}},
		{billingtest.ChineseCreditNote(), []string{"<h1>贷记通知</h1>", "冲减金额"}},
		{draft, []string{"<h1>账单</h1>", `<strong class="draft">草稿</strong>`}},
	} {
		got := string(render(t, c.d))
		for _, want := range c.wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s: the page does not say %q", c.d.Number, want)
			}
		}
		if strings.Contains(got, "发票") {
			t.Errorf("%s: the page says 发票, which only the tax platform may issue", c.d.Number)
		}
	}
}

// elements counts the elements of a page, which must be well-formed.
func elements(t *testing.T, page []byte) map[string]int {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	counts := map[string]int{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return counts
		}
		if err != nil {
			t.Fatalf("parse page: %v", err)
		}
		if e, ok := token.(xml.StartElement); ok {
			counts[e.Name.Local]++
			for _, a := range e.Attr {
				if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "style" {
					t.Errorf("element %s has the attribute %s", e.Name.Local, a.Name.Local)
				}
			}
		}
	}
}

// named returns a document in which everything that can be named has one name.
func named(name, website string) *billing.Document {
	d := billingtest.Plain()
	d.Tenant, d.Number, d.Notes[0], d.Seller.LegalName = name, name, name, name
	d.Lines[0].SKU, d.Lines[0].Breakdown.Projects[0].Name = name, name
	d.Currency, d.Seller.Website, d.Buyer.Reference, d.Buyer.LegalName = name, website, name, name
	return d
}

func TestHostileNamesAreOnlyText(t *testing.T) {
	bad := `"><script>alert(1)</script><img src=x onerror=alert(1)>' style='x`
	plain := elements(t, render(t, named("plain", "https://plain.example")))
	hostile := elements(t, render(t, named(bad, "javascript:alert(1)")))
	if diff := cmp.Diff(plain, hostile); diff != "" {
		t.Errorf("names became elements (-plain +hostile):\n%s", diff)
	}
	if plain["script"]+plain["link"]+plain["iframe"]+plain["a"] > 0 {
		t.Errorf("the page loads or runs something: %v", plain)
	}
}

func TestDocumentsThatCannotBeRendered(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*billing.Document)
		want   string
	}{
		"amount": {func(d *billing.Document) { d.Lines[0].Quantity = "" }, "read line 1: read quantity"},
		"logo":   {func(d *billing.Document) { d.Seller.Logo = "%%" }, "read logo"},
		"svg":    {func(d *billing.Document) { d.Seller.Logo = "PHN2Zz4=" }, "it is no PNG"},
	} {
		d := billingtest.Plain()
		c.change(d)
		if _, err := Render(d); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// TestBrowserTakesThePage loads a page in Chromium, which would say so if the page's own policy
// kept it from its style or its logo, and prints it.
func TestBrowserTakesThePage(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed (Debian: chromium), so no browser looks at the page")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "page.html")
	if err := os.WriteFile(file, render(t, billingtest.Chinese()), 0o600); err != nil {
		t.Fatal(err)
	}
	printed := filepath.Join(dir, "page.pdf")
	cmd := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu",
		"--user-data-dir="+dir, "--enable-logging=stderr", "--no-pdf-header-footer",
		"--print-to-pdf="+printed, "file://"+file)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("chromium: %v: %s", err, out)
	}
	for _, line := range strings.Split(string(out), "\n") {
		if strings.Contains(line, "CONSOLE") {
			t.Errorf("the browser complains: %s", line)
		}
	}
	if pdf, err := os.ReadFile(printed); err != nil || !bytes.HasPrefix(pdf, []byte("%PDF-")) {
		t.Errorf("the browser printed nothing: %v", err)
	}
}
