package focus

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/billingtest"
	"github.com/suanpan/suanpan/pkg/money"
)

// itemsOf draws line items of a document's lines: some miss what the lines say, some have no line.
func itemsOf(t *rapid.T, d *billing.Document) []Item {
	type charge struct{ sku, period string }
	charges := []charge{{"gpu.none", d.Period}, {"gpu.none", "2026-07"}}
	for i := range d.Lines {
		l := &d.Lines[i]
		charges = append(charges, charge{l.SKU, l.UsagePeriod})
		for j := range l.Details {
			charges = append(charges, charge{l.Details[j].SKU, l.UsagePeriod})
		}
	}
	var items []Item
	for range rapid.IntRange(0, 8).Draw(t, "items") {
		c := rapid.SampledFrom(charges).Draw(t, "charge")
		items = append(items, item(func(i *Item) {
			i.Tenant, i.Currency, i.SKU, i.UsagePeriod = d.Tenant, d.Currency, c.sku, c.period
			amount := money.New(big.NewInt(rapid.Int64Range(-1e9, 1e17).Draw(t, "amount")), money.Scale)
			i.Amount = amount.Fixed(money.Scale)
			i.BaseQuantity = fmt.Sprint(rapid.Int64Range(-1e6, 1e9).Draw(t, "quantity"))
			i.Kind = rapid.SampledFrom([]string{"usage", "void", "rerate", "rounding"}).Draw(t, "kind")
			i.Per = rapid.SampledFrom([]string{"second", "hour", "day", "month", "unit"}).Draw(t, "per")
			i.UnitPrice = money.New(big.NewInt(rapid.Int64Range(0, 1e15).Draw(t, "price")), 13).String()
			i.Package = rapid.SampledFrom([]string{"", "", "7", "0.3"}).Draw(t, "package")
		}))
	}
	return items
}

// Property: BilledCost of each document adds up to its total to the last digit, whatever its line
// items are; Invoice Detail does, too; costs are price x quantity; Parquet says what CSV says.
func TestRowsAddUpToTheDocuments(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var documents []*billing.Document
		var items []Item
		want := make(map[string]*big.Rat)
		for n := range rapid.IntRange(1, 3).Draw(rt, "documents") {
			d := billingtest.Random(rt, n+1)
			documents = append(documents, d)
			items = append(items, itemsOf(rt, d)...)
			want[d.Number] = rat(t, d.Total)
			if d.Type == billing.CreditNote {
				want[d.Number].Neg(want[d.Number])
			}
		}
		version := rapid.SampledFrom([]Version{V12, V14}).Draw(rt, "version")
		o := Options{Version: version, Format: CSV, Provider: "Cloud"}
		cost := rows(t, write(t, o, documents, items...))
		sums(rt, cost, want)
		for _, r := range cost {
			if r["PricingQuantity"] == "" {
				continue
			}
			product := new(big.Rat).Mul(rat(t, r["ListUnitPrice"]), rat(t, r["PricingQuantity"]))
			if product.Cmp(rat(t, r["ListCost"])) != 0 || r["ListCost"] != r["ContractedCost"] {
				rt.Fatalf("costs %s and %s are not %s", r["ListCost"], r["ContractedCost"],
					product.FloatString(24))
			}
		}
		detail := Options{Version: V14, Format: CSV, Dataset: InvoiceDetail}
		details := rows(t, write(t, detail, documents))
		sums(rt, details, want)
		linked(rt, cost, details)
		o.Format = Parquet
		again := write(t, o, documents, items...)
		if diff := cmp.Diff(plain(t, cost), unpack(t, again)); diff != "" {
			rt.Fatalf("CSV and Parquet differ (-csv +parquet):\n%s", diff)
		}
		if !bytes.Equal(again, write(t, o, documents, items...)) {
			rt.Fatal("the same input gave other bytes")
		}
	})
}

// plain prints decimals without zeros at their ends.
func plain(t *testing.T, rows []map[string]string) []map[string]string {
	t.Helper()
	for _, r := range rows {
		for i := range columns {
			name := columns[i].name
			if columns[i].kind != decimal || r[name] == "" {
				continue
			}
			a, err := money.ParseSigned(r[name])
			if err != nil {
				t.Fatal(err)
			}
			r[name] = a.String()
		}
	}
	return rows
}

// sums compares the sums of the rows of each document with what it says.
func sums(t *rapid.T, rows []map[string]string, want map[string]*big.Rat) {
	got := make(map[string]*big.Rat)
	for number := range want {
		got[number] = new(big.Rat)
	}
	for _, r := range rows {
		if number := r["InvoiceId"]; number != "" {
			cost, _ := new(big.Rat).SetString(r["BilledCost"])
			got[number].Add(got[number], cost)
		}
	}
	for number, total := range want {
		if got[number].Cmp(total) != 0 {
			t.Fatalf("%s: rows come to %s, it says %s", number, got[number].FloatString(13),
				total.FloatString(13))
		}
	}
}

// linked makes sure that each row with a line of an invoice names one that there is, of its
// category.
func linked(t *rapid.T, cost, details []map[string]string) {
	lines := make(map[string]string)
	for _, r := range details {
		if lines[r["InvoiceDetailId"]] != "" {
			t.Fatalf("there are two lines %s", r["InvoiceDetailId"])
		}
		lines[r["InvoiceDetailId"]] = r["ChargeCategory"]
	}
	for _, r := range cost {
		id, versioned := r["InvoiceDetailId"]
		if versioned && id != "" && lines[id] != r["ChargeCategory"] {
			t.Fatalf("a row of category %s is on line %s, of category %q", r["ChargeCategory"], id,
				lines[id])
		}
	}
}

// unpack reads Parquet as rows by column, as CSV has them.
func unpack(t *testing.T, data []byte) []map[string]string {
	t.Helper()
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	kinds := make(map[string]*column)
	for i := range columns {
		kinds[columns[i].name] = &columns[i]
	}
	names := file.Schema().Columns()
	reader := parquet.NewReader(file)
	defer reader.Close()
	var out []map[string]string
	buffer := make([]parquet.Row, 1)
	for {
		n, err := reader.ReadRows(buffer)
		if n == 1 {
			r := make(map[string]string)
			for _, v := range buffer[0] {
				name := names[v.Column()][0]
				r[name] = unpackValue(kinds[name], v)
			}
			out = append(out, r)
		}
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func unpackValue(c *column, v parquet.Value) string {
	if v.IsNull() {
		return ""
	}
	switch c.kind {
	case decimal:
		n := new(big.Int).SetBytes(v.ByteArray())
		if n.Bit(8*decimalBytes-1) == 1 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), 8*decimalBytes))
		}
		return money.New(n, c.scale).String()
	case instant:
		return time.UnixMicro(v.Int64()).UTC().Format(time.RFC3339)
	case text:
	}
	return string(v.ByteArray())
}

// BenchmarkWrite writes line items of one invoice; the memory must not grow with them.
func BenchmarkWrite(b *testing.B) {
	for _, format := range []Format{CSV, Parquet} {
		b.Run(string(format), func(b *testing.B) {
			b.ReportAllocs()
			items := iter.Seq2[Item, error](func(yield func(Item, error) bool) {
				i := item(nil)
				for n := range b.N {
					i.Session = fmt.Sprint("session-", n/700)
					if !yield(i, nil) {
						return
					}
				}
			})
			o := Options{Version: V14, Format: format, Period: "2026-10"}
			if _, err := Write(io.Discard, o, stream(billingtest.Plain()), items); err != nil {
				b.Fatal(err)
			}
		})
	}
}
