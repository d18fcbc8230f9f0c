// Package billingtest has documents to test renderings with: invoices and credit notes as real
// ones are, of parties that do not exist. Each function makes a new one, which the caller may
// change. Their amounts add up, see the package's tests.
package billingtest

import (
	_ "embed" // of the logo
	"encoding/base64"
	"fmt"
	"math/big"

	"github.com/suanpan/suanpan/pkg/billing"
)

//go:embed logo.png
var logo []byte

// Samples returns every sample by its name, which is fit for a file's.
func Samples() map[string]*billing.Document {
	return map[string]*billing.Document{
		"plain":          Plain(),
		"ladder":         Ladder(),
		"late":           Late(),
		"inclusive":      Inclusive(),
		"reverse_charge": ReverseCharge(),
		"credit_note":    CreditNote(),
		"many":           Many(400),
		"chinese":        Chinese(),
		"chinese_credit": ChineseCreditNote(),
		"dinar":          Dinar(),
		"empty":          Empty(),
		"draft":          Draft(),
	}
}

// october returns a document of October 2026 between the two.
func october(n string, seller, buyer *billing.Party, currency, zone string) *billing.Document {
	return &billing.Document{
		Type: billing.Invoice, Number: n, IssueDate: "2026-11-03", DueDate: "2026-12-03",
		Tenant: buyer.Name, Period: "2026-10", PeriodStart: "2026-10-01",
		PeriodEnd: "2026-10-31", Timezone: zone, Currency: currency, Language: "en",
		Seller: seller, Buyer: buyer,
	}
}

// gpuLine is a line of whole GPUs with all breakdowns.
func gpuLine(sku, purchase, band, quantity, price string) billing.Line {
	l := usage(sku, purchase, band, quantity, price, "hour")
	l.Breakdown = billing.Breakdown{
		Projects: split(quantity, "atlas", 60, "borealis", 30, "", 10),
		Teams:    split(quantity, "platform", 45, "research", 45, "", 10),
		Models:   split(quantity, "llama-3-70b", 75, "qwen3-32b", 25),
		ModelVersions: split(quantity, "llama-3-70b/v4", 50, "llama-3-70b/v5", 25,
			"qwen3-32b/v1", 25),
		Stages: split(quantity, "pretraining", 70, "finetuning", 20, "validation", 10),
	}
	return l
}

// Plain is a German invoice of 19 % over two bands, with all that parties can have.
func Plain() *billing.Document {
	d := october(number("RE", 1), Rheinland(), Nordlicht(), "EUR", "Europe/Berlin")
	d.Lines = []billing.Line{
		gpuLine("gpu.h100-80g", "on_demand", "standard", "10368000", "2.85"),
		gpuLine("gpu.h100-80g", "on_demand", "off_peak", "5184000", "1.995"),
		usage("memory.gib", "on_demand", "standard", "331776000", "0.0045", "hour"),
		usage("storage.gib", "on_demand", "standard", "2678400000", "0.04", "month"),
	}
	d.Notes = []string{"Thank you for training with us.", "Please state the number when you pay."}
	finish(d, 2, &billing.LineTax{Category: "S", Rate: "19"}, "", "")
	return d
}

// Draft is Plain before it was issued, of a catalog that names no seller and no tax.
func Draft() *billing.Document {
	d := Plain()
	d.Number, d.IssueDate, d.DueDate, d.Seller = "", "", "", nil
	finish(d, 2, nil, "", "")
	return d
}

// Ladder is an invoice of all kinds of lines but late ones: tiers, a package, spot capacity, a
// commitment, an allowance, a minimum, promotional money and a balance that paid a part.
func Ladder() *billing.Document {
	d := october(number("SG", 204), Straits(), Kestrel(), "USD", "Asia/Singapore")
	d.Contract = "kestrel-2026"
	tiered := gpuLine("gpu.a100-80g", "on_demand", "standard", "7200000", "1.65")
	tiered.Tiers = []billing.Tier{
		{UpTo: "500", Quantity: "1800000", UnitPrice: "1.80", Exact: "900.000000000000"},
		{UpTo: "1500", Quantity: "3600000", UnitPrice: "1.60", Exact: "1600.000000000000"},
		{Quantity: "1800000", UnitPrice: "1.40", Exact: "700.000000000000"},
	}
	tiered.UnitPrice, tiered.Average, tiered.Exact = "1.6", true, "3200.000000000000"
	spot := gpuLine("gpu.h100-80g", "spot", "standard", "3600000", "1.21")
	spot.Average, spot.UnitPrice, spot.Exact = true, "1.213755555556", "1213.755555555556"
	tokens := usage("tokens.trained", "per_task", "standard", "2345678901", "3.50", "unit")
	tokens.Package, tokens.Exact = "1000000", "8211.000000000000" // 2346 packages
	tokens.UnitPrice, tokens.Average = "0.000003500479", true
	tokens.Breakdown.Models = split(tokens.Quantity, "kestrel-7b-instruct", 100)
	covered := usage("gpu.a100-80g", "reserved", "standard", "21427200", "0", "hour")
	fee := sum(billing.CommitmentLine, "gpu.a100-80g",
		"Commitment base-8: 8 x gpu.a100-80g, 1 year, paid monthly", "6400")
	pack := sum(billing.AllowanceLine, "gpu.h100-80g", "Allowance starter: 100 GPU hours", "-121.38")
	minimum := sum(billing.MinimumLine, "", "Minimum spend of 20,000.00 a month", "1096.624444444444")
	promo := sum(billing.CreditLine, "", "Promotional credit welcome-2026", "-250")
	promo.Grant = "welcome-2026"
	sla := sum(billing.CreditLine, "gpu.a100-80g",
		"Service credit: outage of node sin-a-17 on 2026-10-14, 03:10 to 05:40", "-48.00")
	d.Lines = []billing.Line{tiered, covered, spot, tokens, fee, pack, minimum, sla, promo}
	d.Prepaid = []billing.Paid{{Grant: "topup-2026-09", Amount: "5000.00"}}
	d.Notes = []string{"Dead letters of our own exporters were left out of this period: 3 events."}
	finish(d, 2, &billing.LineTax{Category: "S", Rate: "9"}, "", "")
	return d
}

// Late is an invoice with usage of two earlier periods.
func Late() *billing.Document {
	d := Plain()
	d.Number = number("RE", 2)
	for i, month := range []string{"2026-08", "2026-09"} {
		a := usage("gpu.h100-80g", "on_demand", "standard", "36000", "2.85", "hour")
		b := usage("memory.gib", "on_demand", "standard", "1000000", "0.0045", "hour")
		exact := fixed(new(big.Rat).Add(rat(a.Exact), rat(b.Exact)), exactPlaces)
		late := sum(billing.LateLine, "", "", exact)
		late.UsagePeriod, late.Start, late.End = month, month+"-11", fmt.Sprint(month, "-", 12+i)
		late.Details = []billing.Line{a, b}
		d.Lines = append(d.Lines, late)
	}
	finish(d, 2, &billing.LineTax{Category: "S", Rate: "19"}, "", "")
	return d
}

// Inclusive is a Japanese invoice, in a currency without decimals, of prices with their tax.
func Inclusive() *billing.Document {
	d := october(number("JP", 77), Sakura(), Tanuki(), "JPY", "Asia/Tokyo")
	d.Lines = []billing.Line{
		gpuLine("gpu.l40s", "on_demand", "standard", "2592000", "198.5"),
		usage("network.egress", "on_demand", "standard", "1234.567", "9.9", "unit"),
	}
	finish(d, 0, &billing.LineTax{Category: "S", Rate: "10", Inclusive: true}, "", "")
	return d
}

// ReverseCharge is an invoice to another country of the European Union.
func ReverseCharge() *billing.Document {
	d := october(number("RE", 3), Rheinland(), Moulin(), "EUR", "Europe/Berlin")
	d.Lines = []billing.Line{
		gpuLine("gpu.h100-80g", "on_demand", "standard", "3456000", "2.85"),
	}
	d.Notes = []string{"Reverse charge: the buyer owes the tax."}
	finish(d, 2, &billing.LineTax{Category: "AE", Rate: "0"},
		"Reverse charge, Article 196 of Directive 2006/112/EC", "VATEX-EU-AE")
	return d
}

// CreditNote lowers Plain by a part of one line.
func CreditNote() *billing.Document {
	d := october(number("GS", 1), Rheinland(), Nordlicht(), "EUR", "Europe/Berlin")
	d.Type, d.DueDate = billing.CreditNote, ""
	d.Cites = &billing.Citation{
		Key: d.Key().String(), Number: number("RE", 1), IssueDate: "2026-11-03",
		Reason: "Node fra-b-03 was throttled from 2026-10-20 to 2026-10-21.", ID: "throttle-1",
	}
	d.IssueDate = "2026-11-10"
	d.Lines = []billing.Line{
		gpuLine("gpu.h100-80g", "on_demand", "standard", "1382400", "2.85"),
	}
	finish(d, 2, &billing.LineTax{Category: "S", Rate: "19"}, "", "")
	return d
}

// Many is an invoice of n lines, some of which have names as long as names may be.
func Many(n int) *billing.Document {
	d := october(number("RE", 4), Rheinland(), Nordlicht(), "EUR", "Europe/Berlin")
	for i := range n {
		l := usage(fmt.Sprintf("gpu.model-%03d-80g", i), "on_demand", "standard",
			fmt.Sprint(36000+i*977), "2.85", "hour")
		switch {
		case i%25 == 7:
			l.SKU = "license.a-simulation-suite-with-a-name-that-nobody-could-fit-on-a-line"
			l.Band = "weekend-nights-of-the-second-half-of-the-year"
			l.Description = "A licence that is shared by all teams of the institute, " +
				"measured by the second and billed with the machines that it runs on"
		case i%10 == 3:
			l = gpuLine(l.SKU, "on_demand", "standard", l.Quantity, "2.85")
			l.Breakdown.Projects = projects(l.Quantity)
		}
		d.Lines = append(d.Lines, l)
	}
	finish(d, 2, &billing.LineTax{Category: "S", Rate: "19"}, "", "")
	return d
}

// projects splits a quantity among twenty projects, the last of which are many.
func projects(quantity string) []billing.Share {
	var parts []any
	for i := range 20 {
		parts = append(parts, fmt.Sprintf("project-%02d-of-the-institute-for-long-names", i), 5)
	}
	shares := split(quantity, parts...)
	shares[19].Name, shares[19].Others = "", 31
	return shares
}

// Chinese is a Chinese invoice of 6 %, with names that need a Chinese font.
func Chinese() *billing.Document {
	d := october(number("HZ", 12), Hangzhou(), Shenzhen(), "CNY", "Asia/Shanghai")
	d.Language, d.Contract = "zh", "xingchen-2026"
	first := gpuLine("gpu.a800-80g", "on_demand", "standard", "8640000", "12.80")
	first.Breakdown.Projects = split(first.Quantity, "星辰大模型", 55, "客服助手", 35, "", 10)
	first.Breakdown.Teams = split(first.Quantity, "算法一组", 60, "算法二组", 40)
	night := gpuLine("gpu.a800-80g", "on_demand", "off_peak", "4320000", "7.68")
	night.Breakdown.Projects = split(night.Quantity, "星辰大模型", 100)
	task := usage("task.finetune", "per_task", "standard", "12", "880", "unit")
	task.Description = "微调任务（按次）"
	d.Lines = []billing.Line{first, night, task}
	d.Notes = []string{"感谢您的信任。付款时请注明账单编号。"}
	finish(d, 2, &billing.LineTax{Category: "S", Rate: "6"}, "", "")
	return d
}

// ChineseCreditNote lowers Chinese.
func ChineseCreditNote() *billing.Document {
	d := Chinese()
	d.Type, d.Number, d.IssueDate, d.DueDate = billing.CreditNote, number("HZD", 1), "2026-11-12", ""
	d.Cites = &billing.Citation{
		Key: d.Key().String(), Number: number("HZ", 12), IssueDate: "2026-11-03",
		Reason: "节点故障补偿", ID: "fault-1",
	}
	d.Lines = d.Lines[2:]
	finish(d, 2, &billing.LineTax{Category: "S", Rate: "6"}, "", "")
	return d
}

// Dinar is an invoice in a currency with three decimals, outside of the scope of a tax.
func Dinar() *billing.Document {
	d := october(number("KW", 5), Gulf(), Pearl(), "KWD", "Asia/Kuwait")
	d.Lines = []billing.Line{
		gpuLine("gpu.h200-141g", "on_demand", "standard", "2678407", "1.125"),
		usage("cpu.core", "on_demand", "standard", "85708800", "0.0125", "hour"),
	}
	finish(d, 3, &billing.LineTax{Category: "O", Rate: "0"}, "Not subject to VAT", "VATEX-EU-O")
	return d
}

// Empty is the invoice of a month without usage.
func Empty() *billing.Document {
	d := october(number("RE", 5), Rheinland(), Nordlicht(), "EUR", "Europe/Berlin")
	finish(d, 2, &billing.LineTax{Category: "S", Rate: "19"}, "", "")
	return d
}

// encodedLogo returns the logo as a document has it.
func encodedLogo() string { return base64.StdEncoding.EncodeToString(logo) }
