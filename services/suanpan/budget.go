package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
	"github.com/suanpan/suanpan/pkg/notify"
	"github.com/suanpan/suanpan/pkg/pipeline"
)

func budgetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "budget",
		Short: "List budgets, and see how they stand",
		Long: `List budgets, and see how they stand.

A budget is a catalog document (kind: Budget) that says what a tenant, one of its projects or what
has some labels may cost in a day or a month. The biller looks at budgets every minute and tells
the channels of a budget once when its spend reaches each of its thresholds.`,
	}
	cmd.AddCommand(budgetListCommand(), budgetStatusCommand())
	return cmd
}

// standing is how a budget stands, as it is printed.
type standing struct {
	Budget   string `json:"budget"`
	Tenant   string `json:"tenant"`
	Period   string `json:"period"`
	Spend    string `json:"spend"`
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
	Share    string `json:"share"`
	Forecast string `json:"forecast"`
	Reaches  string `json:"reaches"` // when the amount is reached at this pace, "" if it is not
}

func budgetStatusCommand() *cobra.Command {
	var links billingLinks
	var tenant string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show spend, share, forecast, and when a budget will be used up",
		Long: `Show how budgets stand in their running periods: what is spent before tax, its share of the
amount, what it will be at the end of the period at the present pace, and when the amount is
reached.`,
		Example: `  suanpan budget status --tenant acme
  suanpan budget status --json | jq -r 'select(.share | tonumber > 0.8) | .budget'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return links.at(cmd.Context(), cmd.ErrOrStderr(), func(d *desk) error {
				now := time.Now().UTC()
				var budgets []*catalog.Budget
				for _, b := range d.prices.Catalog.Budgets(now.Unix()) {
					if tenant == "" || b.Tenant == tenant {
						budgets = append(budgets, b)
					}
				}
				all, err := pipeline.Standings(cmd.Context(), d.rows, d.prices.Catalog, budgets, now)
				if err != nil {
					return err
				}
				alert.SortStandings(all)
				return printStandings(cmd.OutOrStdout(), all, asJSON)
			})
		},
	}
	links.register(cmd.Flags())
	cmd.Flags().StringVar(&tenant, "tenant", "", "only those of this `tenant`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, one a line")
	return cmd
}

func printStandings(out io.Writer, all []alert.BudgetStatus, asJSON bool) error {
	encoder := json.NewEncoder(out)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if !asJSON {
		fmt.Fprintln(table, "BUDGET\tTENANT\tPERIOD\tSPEND\tAMOUNT\tSHARE\tFORECAST\tUSED UP")
	}
	for i := range all {
		b := &all[i]
		digits := digitsOf(b.Currency)
		s := standing{
			Budget: b.Name, Tenant: b.Tenant, Period: b.Period, Currency: b.Currency,
			Spend:    b.Spend.Round(money.Scale, money.HalfUp).String(),
			Amount:   b.Amount.String(),
			Share:    b.Share().String(),
			Forecast: b.Forecast.Round(digits, money.HalfUp).Fixed(digits),
		}
		if b.Reaches != 0 {
			s.Reaches = time.Unix(b.Reaches, 0).UTC().Format(time.RFC3339)
		}
		if asJSON {
			if err := encoder.Encode(s); err != nil {
				return err
			}
			continue
		}
		share := b.Share().MulInt(big.NewInt(100)).Round(1, money.HalfUp).Fixed(1)
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s %s\t%s %%\t%s\t%s\n", s.Budget, s.Tenant, s.Period,
			b.Spend.Round(digits, money.HalfUp).Fixed(digits), s.Amount, s.Currency, share, s.Forecast,
			orDash(s.Reaches))
	}
	return table.Flush()
}

// digitsOf is how many decimals amounts of a currency are shown with.
func digitsOf(currency string) int {
	if digits, ok := money.Digits(currency); ok {
		return digits
	}
	return 2
}

// rule is a budget as it is printed.
type rule struct {
	Budget     string            `json:"budget"`
	Tenant     string            `json:"tenant"`
	Period     string            `json:"period"` // day or month
	Project    string            `json:"project,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	Amount     string            `json:"amount"`
	Currency   string            `json:"currency"`
	Basis      string            `json:"basis"`
	Thresholds []string          `json:"thresholds"`
	Notify     []string          `json:"notify"`
	From       string            `json:"effective_from"`
	Owner      string            `json:"owner,omitempty"`
}

func ruleOf(b *catalog.Budget) rule {
	r := rule{
		Budget: b.Name, Tenant: b.Tenant, Period: "month", Project: b.Project, Labels: b.Labels,
		Amount: b.Amount.String(), Currency: b.Currency, Basis: "effective",
		Thresholds: []string{}, Notify: []string{}, From: "always", Owner: b.Owner,
	}
	if b.Daily {
		r.Period = "day"
	}
	if b.List {
		r.Basis = "list"
	}
	if b.From != catalog.Always {
		r.From = metering.InstantOf(b.From).String()
	}
	for _, t := range b.Thresholds {
		r.Thresholds = append(r.Thresholds, t.String())
	}
	for _, c := range b.Notify {
		r.Notify = append(r.Notify, notify.ShowChannel(c))
	}
	return r
}

// scope is what the budget counts, in one word.
func (r *rule) scope() string {
	var parts []string
	if r.Project != "" {
		parts = append(parts, "project="+r.Project)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Labels)) {
		parts = append(parts, name+"="+r.Labels[name])
	}
	if len(parts) == 0 {
		return "all"
	}
	return strings.Join(parts, ",")
}

func budgetListCommand() *cobra.Command {
	var links kafkaFlags
	var tenant string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the budgets in force, and whom they tell",
		Long: `List the budgets that are in force now, as the catalog has them. What is spent of them is
shown by "suanpan budget status".`,
		Example: `  suanpan budget list --tenant acme
  suanpan budget list --json | jq -r .budget`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var rules []rule
			err := readPrices(cmd, &links, func(prices *pipeline.Prices, now time.Time) error {
				for _, b := range prices.Catalog.Budgets(now.Unix()) {
					if tenant == "" || b.Tenant == tenant {
						rules = append(rules, ruleOf(b))
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
			return printRules(cmd.OutOrStdout(), rules, asJSON)
		},
	}
	links.register(cmd.Flags())
	cmd.Flags().StringVar(&tenant, "tenant", "", "only those of this `tenant`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, one a line")
	return cmd
}

func printRules(out io.Writer, rules []rule, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(out)
		for i := range rules {
			if err := encoder.Encode(&rules[i]); err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "BUDGET\tTENANT\tSCOPE\tPERIOD\tAMOUNT\tBASIS\tTHRESHOLDS\tNOTIFY\tFROM")
	for i := range rules {
		r := &rules[i]
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s %s\t%s\t%s\t%s\t%s\n", r.Budget, r.Tenant, r.scope(),
			r.Period, r.Amount, r.Currency, r.Basis, strings.Join(r.Thresholds, " "),
			orDash(strings.Join(r.Notify, " ")), r.From)
	}
	return table.Flush()
}
