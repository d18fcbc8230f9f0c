package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/pipeline"
)

// listed is one version of a document, as `get` shows it.
type listed struct {
	Kind     string          `json:"kind"`
	Name     string          `json:"name"`
	From     string          `json:"effective_from"`
	Status   string          `json:"status"` // past, in force, future or ignored
	Why      string          `json:"why,omitempty"`
	Document json.RawMessage `json:"document,omitempty"`
}

func getCommand() *cobra.Command {
	var links kafkaFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "get KIND [NAME]",
		Short: "Show catalog documents and their versions",
		Long: `Show catalog documents and their versions, as the log has them: calendars, pricebooks,
sellers, tenants, contracts, taxrules, grants, budgets, policies, or all. Versions that no reader
takes in are shown as ignored, with the reason.`,
		Example: `  suanpan get pricebooks
  suanpan get pricebook public --json | jq '.[-1].document'
  suanpan get all`,
		Args: usageArgs(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, err := parseKind(args[0])
			if err != nil {
				return err
			}
			name := ""
			if len(args) > 1 {
				name = args[1]
			}
			client, done, err := connectKafka(cmd.Context(), &links, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer func() { _ = done() }() // only read from
			prices := newPrices(client)
			now := time.Now()
			if err := prices.Refresh(cmd.Context(), now); err != nil {
				return err
			}
			return printListed(cmd.OutOrStdout(), list(prices, kind, name, now.Unix()), asJSON)
		},
	}
	links.register(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, with the documents")
	return cmd
}

// usageArgs marks a wrong number of arguments as wrong usage.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return fmt.Errorf("%w\n%w: %s --help", err, errUsage, cmd.CommandPath())
		}
		return nil
	}
}

// parseKind reads a kind in any case, singular or plural; "all" is "".
func parseKind(text string) (string, error) {
	if text == "all" {
		return "", nil
	}
	for _, kind := range catalog.Kinds {
		plural := kind + "s"
		if stem, ok := strings.CutSuffix(kind, "y"); ok {
			plural = stem + "ies"
		}
		if strings.EqualFold(text, kind) || strings.EqualFold(text, plural) {
			return kind, nil
		}
	}
	return "", fmt.Errorf("kind %q is none of %s, all (%w)", text, strings.Join(catalog.Kinds, ", "),
		errUsage)
}

func list(prices *pipeline.Prices, kind, name string, now int64) []listed {
	var out []listed
	inForce := make(map[string]int64) // the start of the newest version that has started
	documents := slices.Clone(prices.Catalog.Documents())
	slices.SortStableFunc(documents, func(a, b catalog.Document) int {
		if c := strings.Compare(a.ID(), b.ID()); c != 0 {
			return c
		}
		return int(min(1, max(-1, a.From-b.From)))
	})
	for _, d := range documents {
		if d.From <= now {
			inForce[d.ID()] = d.From
		}
	}
	for _, d := range documents {
		if kind != "" && d.Kind != kind || name != "" && d.Name != name {
			continue
		}
		status := "past"
		switch start, ok := inForce[d.ID()]; {
		case d.From > now:
			status = "future"
		case ok && start == d.From:
			status = "in force"
		}
		out = append(out, listed{
			Kind: d.Kind, Name: d.Name, From: fromText(d), Status: status, Document: d.JSON,
		})
	}
	for _, i := range prices.Ignored {
		k, n, ok := strings.Cut(string(i.Key), "/")
		if ok && (kind == "" || k == kind) && (name == "" || n == name) {
			out = append(out, listed{Kind: k, Name: n, Status: "ignored", Why: i.Why})
		}
	}
	return out
}

func printListed(out io.Writer, all []listed, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(all)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "KIND\tNAME\tEFFECTIVE FROM\tSTATUS\t")
	for _, l := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", l.Kind, l.Name, l.From, l.Status, l.Why)
	}
	return table.Flush()
}
