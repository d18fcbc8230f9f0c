package pdf

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/billingtest"
	"github.com/suanpan/suanpan/pkg/billing/view"
	"github.com/suanpan/suanpan/tests/fonttest"
)

// render makes a PDF, and leaves it in the folder SUANPAN_PDF_OUT, if that is set, to be looked at.
func render(t testing.TB, name string, d *billing.Document, font []byte) []byte {
	t.Helper()
	out, err := Render(d, font)
	if err != nil {
		t.Fatalf("Render(%s): %v", name, err)
	}
	if dir := os.Getenv("SUANPAN_PDF_OUT"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name+".pdf"), out, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestTwoRenderingsAreTheSameBytes(t *testing.T) {
	font := fonttest.Font(t)
	for _, name := range slices.Sorted(maps.Keys(billingtest.Samples())) {
		first := render(t, name, billingtest.Samples()[name], font)
		for range 2 {
			if again := render(t, name, billingtest.Samples()[name], font); !bytes.Equal(first, again) {
				t.Fatalf("%s: a second rendering differs", name)
			}
		}
	}
}

// The orders in which pdftotext reads: rows of the page, or what was drawn together.
const (
	byRow  = "-layout"
	asMade = "-raw"
)

// text extracts the text of a PDF in an order, with pages divided by form feeds.
func text(t *testing.T, pdf []byte, order string) string {
	t.Helper()
	program, err := exec.LookPath("pdftotext")
	if err != nil {
		t.Skip("pdftotext is not installed (Debian: poppler-utils), so nobody reads the PDFs")
	}
	cmd := exec.CommandContext(t.Context(), program, order, "-", "-")
	cmd.Stdin = bytes.NewReader(pdf)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("pdftotext: %v: %s", err, stderr.String())
	}
	if stderr.Len() > 0 {
		t.Errorf("pdftotext complains: %s", stderr.String())
	}
	return string(out)
}

// squeeze leaves out all space: wrapping and columns put it anywhere.
func squeeze(s string) string { return strings.Join(strings.Fields(s), "") }

func TestPagesSayWhatTheDocumentSays(t *testing.T) {
	font := fonttest.Font(t)
	for name, d := range billingtest.Samples() {
		t.Run(name, func(t *testing.T) {
			got := squeeze(text(t, render(t, name, d, font), asMade))
			want := []string{
				d.Number, d.IssueDate, d.DueDate, d.PeriodStart, d.PeriodEnd, d.Currency,
				view.Group(d.Subtotal), view.Group(d.Total), view.Group(d.Due), d.Tenant,
			}
			for _, l := range d.Lines {
				want = append(want, l.SKU, view.Group(l.Amount))
				for _, s := range slices.Concat(l.Breakdown.Stages, l.Breakdown.Teams) {
					want = append(want, view.Group(s.Amount))
				}
				for _, detail := range l.Details {
					want = append(want, detail.SKU, view.Group(detail.Amount))
				}
			}
			for _, x := range d.Taxes {
				want = append(want, view.Group(x.Taxable), view.Group(x.Tax), x.Reason, x.ReasonCode)
			}
			for _, p := range d.Prepaid {
				want = append(want, p.Grant, view.Group(p.Amount))
			}
			want = append(want, d.Notes...)
			if d.Buyer != nil {
				want = append(want, d.Buyer.LegalName)
			}
			for _, w := range want {
				if !strings.Contains(got, squeeze(w)) {
					t.Errorf("the PDF does not say %q", w)
				}
			}
			if !strings.Contains(got, d.Proof.RowsSHA256) {
				t.Errorf("the proof is not in the footer")
			}
		})
	}
}

func TestTitlesByLanguage(t *testing.T) {
	font := fonttest.Font(t)
	draft := billingtest.Chinese()
	draft.Number, draft.IssueDate, draft.DueDate = "", "", ""
	for _, c := range []struct {
		name  string
		d     *billing.Document
		wants []string
	}{
		{"plain", billingtest.Plain(), []string{"Invoice"}},
		{"credit_note", billingtest.CreditNote(), []string{"Creditnote", "Amountcredited"}},
		{"draft", billingtest.Draft(), []string{"Invoice", "Draft"}},
		{"chinese", billingtest.Chinese(), []string{"账单", "应付金额", "第1页，共"}},
		{"chinese_credit", billingtest.ChineseCreditNote(), []string{"贷记通知", "节点故障补偿"}},
		{"chinese_draft", draft, []string{"账单", "草稿"}},
	} {
		got := squeeze(text(t, render(t, c.name, c.d, font), asMade))
		for _, want := range c.wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s: the PDF does not say %q", c.name, want)
			}
		}
		if strings.Contains(got, "发票") {
			t.Errorf("%s: the PDF says 发票, which only the tax platform may issue", c.name)
		}
	}
}

func TestEveryPageHasHeadingsAndItsNumber(t *testing.T) {
	font := fonttest.Font(t)
	got := text(t, render(t, "many", billingtest.Many(400), font), byRow)
	pages := strings.Split(strings.TrimSuffix(got, "\f"), "\f")
	if len(pages) < 10 {
		t.Fatalf("400 lines are on %d pages", len(pages))
	}
	for i, page := range pages {
		flat := squeeze(page)
		number := squeeze(strings.Join([]string{"Page", strconv.Itoa(i + 1), "of", strconv.Itoa(len(pages))}, " "))
		if !strings.Contains(flat, number) {
			t.Errorf("page %d does not say %q", i+1, number)
		}
		if i < len(pages)-2 && !strings.Contains(flat, "DescriptionQuantityUnitprice") {
			t.Errorf("page %d has no headings", i+1)
		}
	}
}

// hostile is a document whose names are as bad as anybody can make them.
func hostile() *billing.Document {
	d := billingtest.Ladder()
	bad := []string{
		strings.Repeat("longnamewithoutanyplacetobreak", 20), "\x00\x1b[2J\u202egnp.exe\u202c",
		"\U0001F680\U0001F469\u200d\U0001F4BB", "(paren\\theses)) Tj ET", "\uffff\ufffd\xff", "\n\n\n",
		"مرحبا", "{nb}", "",
	}
	for i := range d.Lines {
		l := &d.Lines[i]
		l.SKU, l.Band, l.Description = bad[i], bad[(i+1)%len(bad)], strings.Repeat(bad[i], 30)
		for j := range l.Breakdown.Projects {
			l.Breakdown.Projects[j].Name = bad[(i+j)%len(bad)]
		}
	}
	d.Seller.LegalName, d.Buyer.LegalName, d.Tenant = bad[0], bad[1], bad[0]
	d.Buyer.Reference, d.Buyer.Address.Street = bad[0], bad[0]
	for i := range 150 {
		d.Prepaid = append(d.Prepaid, billing.Paid{Grant: bad[i%len(bad)], Amount: "0.00"})
		d.Notes = append(d.Notes, bad[i%len(bad)])
	}
	return d
}

func TestHostileNamesStayOnThePage(t *testing.T) {
	font := fonttest.Font(t)
	first := render(t, "hostile", hostile(), font)
	if again := render(t, "hostile", hostile(), font); !bytes.Equal(first, again) {
		t.Error("a second rendering differs")
	}
	got := text(t, first, asMade)
	for _, want := range []string{"(paren\\theses)) Tj ET", "{nb}", "USD 16,475.18"} {
		if !strings.Contains(got, want) {
			t.Errorf("the PDF does not say %q", want)
		}
	}
	if pages := strings.Count(got, "\f"); pages > 30 {
		t.Errorf("hostile names fill %d pages", pages)
	}
}

func TestDocumentsThatCannotBeRendered(t *testing.T) {
	font := fonttest.Font(t)
	for name, c := range map[string]struct {
		change func(*billing.Document)
		want   string
	}{
		"amount": {func(d *billing.Document) { d.Lines[1].Quantity = "1e5" }, "read line 2: read quantity"},
		"date":   {func(d *billing.Document) { d.IssueDate = "yesterday" }, "read date"},
		"logo":   {func(d *billing.Document) { d.Seller.Logo = "%%" }, "read logo"},
		"image":  {func(d *billing.Document) { d.Seller.Logo = "AAAA" }, "draw logo: read picture"},
	} {
		d := billingtest.Plain()
		c.change(d)
		if _, err := Render(d, font); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
	if _, err := Render(billingtest.Plain(), []byte("no font at all")); err == nil {
		t.Error("a PDF without a font was rendered")
	}
}

func BenchmarkRender(b *testing.B) {
	font := fonttest.Font(b)
	d := billingtest.Plain()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Render(d, font); err != nil {
			b.Fatal(err)
		}
	}
}
