package biller

import (
	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/notify"
)

// Example returns an alert of a kind, as one could fire: for tests of channels and templates.
func Example(kind alert.Kind, now int64) alert.Alert {
	at := metering.InstantOf(now).String()
	f := figure
	a := alert.Alert{
		Key: "example", Status: alert.Firing, Kind: kind, Tenant: "acme", Name: string(kind),
		At: at, To: []alert.Contact{},
	}
	a.ID = a.Key
	load := []alert.Figure{
		f("utilisation", "1.25", "%"), f("peak", "1.9", "%"), f("threshold", "50", "%"),
		f("minutes", "10", "min"), f("until", at, ""), f("memory_used", "9000", "MiB"),
		f("memory_total", "81920", "MiB"),
	}
	switch catalog.PolicyType(kind) {
	case catalog.IdleGPU:
		a.Subject, a.Figures = "session-1", append(load, f("held", "1", "gpu.a800-80g"))
		a.Labels = map[string]string{
			"project": "research", "lease": "lease-1", "session": "session-1", "node": "node-1",
			"sku": "gpu.a800-80g",
		}
		a.Hint = &alert.Hint{Options: []alert.Option{{
			SKU: "gpu.a800-80g", Amount: "0.2", MemoryMiB: 16384, Price: "6", Per: "hour", Currency: "CNY",
		}}}
	case catalog.Unreleased:
		a.Subject, a.Figures = "lease-1", append(load, f("sessions", "1", ""))
		a.Labels = map[string]string{"project": "research", "lease": "lease-1"}
		a.Hint = &alert.Hint{Stop: &alert.Stop{
			Tenant: "acme", Lease: "lease-1", Sessions: []string{"session-1"}, Nodes: []string{"node-1"},
		}}
	case catalog.LowUtilisation:
		a.Tenant, a.Subject = "", "GPU-1"
		a.Labels = map[string]string{"card": "GPU-1", "node": "node-1", "sku": "gpu.a800-80g"}
		a.Figures = []alert.Figure{
			f("utilisation", "41.5", "%"), f("threshold", "70", "%"), f("days", "7", "d"),
			f("held", "120", "h"), f("until", at, ""),
		}
	case catalog.FleetUtilisation:
		a.Tenant, a.Subject = "", "fleet"
		a.Figures = []alert.Figure{
			f("utilisation", "61.2", "%"), f("threshold", "85", "%"), f("hours", "24", "h"),
			f("held", "2400", "unit-hours"), f("used", "1468.8", "unit-hours"), f("until", at, ""),
		}
	case catalog.SpendAnomaly, catalog.ExporterSilent, catalog.PriceChange, catalog.PriceLow,
		catalog.DeadLetters, catalog.HeldInvoices:
		exampleOfEvents(&a, at)
	case catalog.ContractEnd, catalog.AllowanceUsed:
	default:
		a.Name, a.Period, a.Threshold, a.Spend, a.Amount, a.Currency, a.Forecast = "monthly", "2026-01",
			"0.8", "80000", "100000", "CNY", "124000"
		a.Query = alert.QueryBudget(&catalog.Budget{Tenant: a.Tenant, Currency: a.Currency}, a.Period)
	}
	return a
}

func exampleOfEvents(a *alert.Alert, at string) {
	f := figure
	switch catalog.PolicyType(a.Kind) {
	case catalog.SpendAnomaly:
		a.Subject, a.Labels = "CNY", map[string]string{"currency": "CNY"}
		a.Figures = []alert.Figure{
			f("spend", "912.00", "CNY"), f("median", "300.00", "CNY"), f("deviation", "20.00", "CNY"),
			f("usual_from", "181.39", "CNY"), f("usual_to", "418.61", "CNY"), f("hour", at, ""),
			f("history", "672", "h"),
		}
	case catalog.ExporterSilent:
		a.Subject, a.Labels = "session-1", map[string]string{
			"project": "research", "lease": "lease-1", "session": "session-1", "node": "node-1",
		}
		a.Figures = []alert.Figure{
			f("last_seen", at, ""), f("silent", "7", "min"), f("minutes", "5", "min"),
		}
	case catalog.PriceChange, catalog.PriceLow:
		a.Tenant, a.Subject = "", "market gpu.a800-80g cn-north"
		a.Labels = map[string]string{"sku": "gpu.a800-80g", "region": "cn-north"}
		a.Figures = []alert.Figure{
			f("before", "12", "CNY/h"), f("price", "9", "CNY/h"), f("change", "-25", "%"),
			f("low", "9.5", "CNY/h"), f("median", "12", "CNY/h"), f("days", "90", "d"),
			f("quantile", "0.1", ""),
		}
		a.Hint = &alert.Hint{Lock: &alert.Lock{
			SKU: "gpu.a800-80g", Region: "cn-north", Price: "9", Per: "hour", Currency: "CNY",
		}}
	case catalog.DeadLetters:
		a.Subject, a.Labels = "no_price", map[string]string{"reason": "no_price"}
		a.Figures = []alert.Figure{f("count", "3", ""), f("newest", at, "")}
	case catalog.HeldInvoices:
		a.Subject, a.Labels = "documents", map[string]string{"document": "acme,,2026-01,CNY"}
		a.Figures = []alert.Figure{
			f("count", "1", ""), f("document", "acme,,2026-01,CNY", ""), f("period", "2026-01", ""),
			f("since", at, ""), f("reason", "negative total", ""),
		}
	default:
	}
}

func figure(name, value, unit string) alert.Figure {
	return alert.Figure{Name: name, Value: value, Unit: unit}
}

// Examples returns messages of every type, firing and resolved, in both languages.
func Examples() []notify.Message {
	kinds := []alert.Kind{alert.Budget}
	for kind := range phrases {
		kinds = append(kinds, kind)
	}
	const noon = 1_767_614_400 // on 2026-01-05
	var all []notify.Message
	for _, kind := range kinds {
		for _, language := range []string{"en", "zh"} {
			fires := Example(kind, noon)
			over := fires
			over.Status, over.ID, over.Why = alert.Resolved, fires.Key+",resolved", alert.Recovered
			over.Since, over.At = fires.At, metering.InstantOf(noon+3600).String()
			for _, a := range []alert.Alert{fires, over} {
				m, err := MessageOf(&a, language)
				if err != nil {
					panic("BUG: an example is wrong: " + err.Error())
				}
				all = append(all, m)
			}
		}
	}
	return all
}
