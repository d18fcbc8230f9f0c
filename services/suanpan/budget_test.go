package main

import (
	"bytes"
	"testing"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/money"
)

func TestPrintStandings(t *testing.T) {
	standing := func(name, currency, spend, amount, forecast string,
		reaches int64,
	) alert.BudgetStatus {
		return alert.BudgetStatus{
			Budget: &catalog.Budget{
				Name: name, Tenant: "acme", Currency: currency, Amount: money.MustParse(amount),
			},
			Period: "2026-01", Spend: money.MustParse(spend), Forecast: money.MustParse(forecast),
			Reaches: reaches,
		}
	}
	all := []alert.BudgetStatus{
		standing("llm", "EUR", "832.5012345", "1000", "1665.005", 1_767_700_800),
		standing("tokyo", "JPY", "7", "300000", "14.5", 0),
	}
	f := func(asJSON bool, want string) {
		t.Helper()
		var out bytes.Buffer
		if err := printStandings(&out, all, asJSON); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
		}
	}
	f(false, `BUDGET  TENANT  PERIOD   SPEND   AMOUNT      SHARE   FORECAST  USED UP
llm     acme    2026-01  832.50  1000 EUR    83.3 %  1665.01   2026-01-06T12:00:00Z
tokyo   acme    2026-01  7       300000 JPY  0.0 %   15        -
`)
	f(true, `{"budget":"llm","tenant":"acme","period":"2026-01","spend":"832.5012345","amount":"1000",`+
		`"currency":"EUR","share":"0.8325","forecast":"1665.01","reaches":"2026-01-06T12:00:00Z"}
{"budget":"tokyo","tenant":"acme","period":"2026-01","spend":"7","amount":"300000",`+
		`"currency":"JPY","share":"0","forecast":"15","reaches":""}
`)
}
