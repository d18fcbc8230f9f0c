//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// deskCatalog has a book and three tenants, and no seller.
const deskCatalog = `kind: PriceBook
name: public
effective_from: "2025-12-01T00:00:00Z"
currency: EUR
timezone: UTC
prices: [{sku: gpu.a800-80g, per: hour, price: "6.00"}]
---
{kind: Tenant, name: acme, price_book: public, effective_from: "2025-12-01T00:00:00Z"}
---
{kind: Tenant, name: blue, price_book: public, effective_from: "2025-12-01T00:00:00Z"}
---
kind: Tenant
name: coral
price_book: public
effective_from: "2025-12-01T00:00:00Z"
legal_name: Coral SARL
address: {city: Paris, country: FR}
endpoint: {scheme: "0009", id: "55208131766522"}
reference: PO-7
`

const deskSeller = `kind: Seller
name: cloud
legal_name: Cloud GmbH
address: {street: Weg 1, city: Berlin, postal_code: "10115", country: DE}
tax_id: DE123456789
endpoint: {scheme: "0204", id: "991-1234512345-06"}
email: billing@cloud.example
phone: "+49 30 1234567"
timezone: Europe/Berlin
bank: {account: DE75512108001245126199}
accounts: {receivable: "1400", tax: "1776", revenue: [{sku: "*", account: "8400"}]}
---
kind: TaxRule
name: vat
effective_from: "2025-12-01T00:00:00Z"
category: S
rate: "20"
`

// rented is usage of two hours of January.
func rented(tenant string) string {
	return fmt.Sprintf(`{"specversion":"1.0","type":"suanpan.usage.held.v1","source":"/e2e","id":%[1]q,`+
		`"data":{"tenant":%[1]q,"project":"p","lease":"l","session":"s","session_start":`+
		`"2026-01-05T02:00:00Z","purchase":"on_demand","start":"2026-01-05T02:00:00Z",`+
		`"end":"2026-01-05T04:00:00Z","held":{"gpu.a800-80g":"1"}}}`+"\n", tenant)
}

// office is a system with the documents of January.
type office struct {
	*system
	dir string
}

func (o *office) file(name, text string) string {
	path := filepath.Join(o.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		o.t.Fatal(err)
	}
	return path
}

// says runs a command and expects parts of what it prints.
func (o *office) says(want string, args ...string) string {
	o.t.Helper()
	out := o.run(args...)
	for _, part := range strings.Split(want, "|") {
		if !strings.Contains(out, part) {
			o.t.Errorf("suanpan %s prints no %q:\n%s", strings.Join(args, " "), part, out)
		}
	}
	return out
}

// refuses runs a command that must fail, and say why.
func (o *office) refuses(want string, args ...string) {
	o.t.Helper()
	_, errs, code := o.try("", args...)
	if code == 0 || !strings.Contains(errs, want) {
		o.t.Errorf("suanpan %s ended with %d and says no %q:\n%s", strings.Join(args, " "), code, want,
			errs)
	}
}

// TestInvoices works with the documents of a month as a person in finance does.
func TestInvoices(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *system) {
		o := &office{s, t.TempDir()}
		o.run("apply", "-f", o.file("catalog.yaml", deskCatalog))
		o.startService("rater", "rater", "--flush-bulk", "200ms", "--flush-live", "200ms")
		o.startService("archiver", "archiver")
		o.startService("settler", "settler", "--every", "300ms")
		o.runWith(rented("acme")+rented("blue")+rented("coral"), "send", "-")
		o.waitFor("usage", func() error {
			if out := o.run("summary"); strings.Count(out, "12.000000000000") != 3 {
				return fmt.Errorf("%s", out)
			}
			return nil
		})
		o.refuses("nothing to close", "close", "--period", "2025-11")
		o.says("preview|gpu.a800-80g|12.00 EUR", "invoice", "preview", "--tenant", "acme", "--period",
			"2026-01")
		o.held()
		o.credits()
		o.renderings()
		o.rerates()
	})
}

// held: without a seller all documents wait; one is issued when there is one, another voided.
func (o *office) held() {
	o.t.Helper()
	o.says("held|has no seller", "close", "--period", "2026-01")
	o.refuses("has no seller", "invoice", "issue", "acme,,EUR,2026-01", "--held", "--reason", "x")
	o.run("apply", "-f", o.file("seller.yaml", deskSeller))
	o.refuses("say so with --held", "invoice", "issue", "acme,,EUR,2026-01", "--reason", "x")
	o.says("INV-|issued", "invoice", "issue", "acme,,EUR,2026-01", "--held", "--reason", "checked",
		"--by", "ann")
	o.says("by|ann: checked", "invoice", "show", "acme,,EUR,2026-01")
	o.says("voided", "invoice", "void", "blue,,EUR,2026-01", "--reason", "a test")
	o.refuses("is voided", "invoice", "issue", "blue,,EUR,2026-01", "--held", "--reason", "x")
	o.refuses("is issued", "invoice", "void", "acme,,EUR,2026-01", "--reason", "x")
	o.says("issued", "invoice", "issue", "coral,,EUR,2026-01", "--held", "--reason", "checked")
	o.says("-2|issued|coral", "invoice", "list", "--status", "issued")
}

// credits never give more back than was billed.
func (o *office) credits() {
	o.t.Helper()
	acme := "acme,,EUR,2026-01"
	for range 2 { // a repeat makes no second one
		o.says("CN-|5.00 EUR", "creditnote", "create", acme, "--amount", "5.00", "--reason", "goodwill")
	}
	o.refuses("is more than the 9.40 that is left", "creditnote", "create", acme, "--amount", "9.41",
		"--reason", "x")
	o.says("9.40 EUR", "creditnote", "create", acme, "--reason", "all of it")
	o.refuses("nothing is left", "creditnote", "create", acme, "--reason", "more")
	out := o.run("invoice", "list", "--type", "credit_note", "--json")
	if strings.Count(out, "\n") != 2 {
		o.t.Errorf("there are not two credit notes:\n%s", out)
	}
}

// renderings of an invoice, and exports of its month.
func (o *office) renderings() {
	o.t.Helper()
	for format, want := range map[string]string{
		"json": `"schema":"suanpan.invoice.v1"`, "csv": "gpu.a800-80g", "html": "<!DOCTYPE html>",
		"pdf": "%PDF-", "ubl": "<cbc:InvoiceTypeCode>380<",
	} {
		path := filepath.Join(o.dir, "invoice."+format)
		o.run("invoice", "download", "coral,,EUR,2026-01", "--format", format, "--out", path)
		first, err := os.ReadFile(path)
		if err != nil {
			o.t.Fatal(err)
		}
		if !strings.Contains(strings.ToLower(string(first)), strings.ToLower(want)) {
			o.t.Errorf("the %s has no %q: %.200s", format, want, first)
		}
		o.run("invoice", "download", "coral,,EUR,2026-01", "--format", format, "--out", path)
		if again, err := os.ReadFile(path); err != nil || string(again) != string(first) {
			o.t.Errorf("the %s is another one the second time, %v", format, err)
		}
	}
	o.refuses("Tenant/acme: legal_name", "invoice", "download", "acme,,EUR,2026-01", "--format", "ubl")
	o.says("BilledCost|gpu.a800-80g", "export", "focus", "--period", "2026-01")
	o.says("receivable|8400", "export", "journal", "--period", "2026-01")
}

// rerates: a corrected price of the past is obeyed by a re-rating alone, and becomes a credit note.
func (o *office) rerates() {
	o.t.Helper()
	past := strings.Replace(strings.SplitN(deskCatalog, "---\n", 2)[0], "2025-12-01", "2026-01-01", 1)
	file := o.file("past.yaml", strings.Replace(past, "6.00", "4.50", 1))
	o.refuses("--for-rerating", "apply", "-f", file)
	o.says("for re-rating", "apply", "--for-rerating", "-f", file)
	span := []string{
		"rerate", "--tenant", "coral", "--from", "2026-01-01T00:00:00Z",
		"--until", "2026-02-01T00:00:00Z",
	}
	o.says("12|9|-3|EUR", span...)
	o.says("-3", append(span, "--yes")...)
	o.waitFor("the re-rating", func() error {
		if out := o.run("summary", "--tenant", "coral"); !strings.Contains(out, ",9.000000000000,") {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	o.run("close", "--period", "2026-02", "--tenant", "coral")
	o.says("3.60 EUR", "invoice", "list", "--tenant", "coral", "--type", "credit_note")
	for _, id := range []string{"coral,,EUR,2026-01", "coral,,EUR,2026-01,late-2026-02"} {
		o.waitFor("the archive to have all before the close", func() error {
			_, errs, code := o.try("", "verify", id)
			if code != 0 && strings.Contains(errs, "the archive of partition") {
				return errText(errs)
			}
			return nil
		})
		o.says("all as billed", "verify", id)
	}
}
