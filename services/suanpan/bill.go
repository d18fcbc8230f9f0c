package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/rating"
)

func billCommand() *cobra.Command {
	var catalogPath, eventsPath, folder string
	var lateDays int
	cmd := &cobra.Command{
		Use:   "bill --catalog FILE|DIR --events FILE|- [--out DIR]",
		Short: "Make the invoices of a file of events offline",
		Long: `Make the invoices of a file of events offline, by the same rules as the billing service.

The events are rated as "suanpan rate" does; then every billing period that they touch is closed, in
order. A suanpan.period.close.v1 event closes a period at its place in the file: later usage of that
period becomes a late line of the next open one, or a credit note. One document is printed a line,
as schemas/invoice.v1.json describes it: drafts, without number and issue date, by tenant and
period. With --out each is a file of that folder instead.`,
		Example: `  suanpan bill --catalog catalog.yaml --events events.jsonl | jq -r .due
  suanpan bill --catalog prices/ --events events.jsonl --out drafts`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return billFiles(catalogPath, eventsPath, folder, lateDays, cmd.InOrStdin(),
				cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&catalogPath, "catalog", "", "catalog `FILE` or folder")
	flags.StringVar(&eventsPath, "events", "", "events `FILE`, - for standard input")
	flags.StringVar(&folder, "out", "", "write each document to a file of this `DIR`")
	flags.IntVar(&lateDays, "late-days", billing.DefaultLateDays,
		"`DAYS` after a period for which its late usage is charged")
	_ = cmd.MarkFlagRequired("catalog")
	_ = cmd.MarkFlagRequired("events")
	return cmd
}

func billFiles(catalogPath, eventsPath, folder string, lateDays int, stdin io.Reader, stdout,
	stderr io.Writer,
) error {
	if lateDays < 1 {
		return fmt.Errorf("--late-days %d: it is at least 1", lateDays)
	}
	ledger, prices, err := rateOffline(catalogPath, eventsPath, true, stdin, stderr)
	if err != nil {
		return err
	}
	offline := billing.Offline{
		TimeZoneData: timeZoneData(), LateDays: lateDays, AsOf: metering.MaxSecond - 1,
	}
	if folder != "" {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("make folder for documents: %w", err)
		}
	}
	out := bufio.NewWriter(stdout)
	for document, err := range offline.Bill(ledger, prices) {
		if err != nil {
			return err
		}
		text, err := encodeDocument(document)
		if err != nil {
			return err
		}
		if folder == "" {
			_, err = out.Write(text)
		} else {
			err = os.WriteFile(filepath.Join(folder, documentFile(document)), text, 0o644)
		}
		if err != nil {
			return fmt.Errorf("write document: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write documents: %w", err)
	}
	return nil
}

// encodeDocument prints a document as one line.
func encodeDocument(d *billing.Document) ([]byte, error) {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(d); err != nil {
		return nil, fmt.Errorf("encode document %s: %w", d.Key(), err)
	}
	return []byte(text.String()), nil
}

// documentFile names the file of a draft. Names of the catalog may have slashes; what replaces them
// is in no name.
func documentFile(d *billing.Document) string {
	name := d.Key().String()
	if d.Type == billing.CreditNote {
		name += "," + d.Cites.ID
	}
	return strings.ReplaceAll(name, "/", "%2F") + ".json"
}

// timeZoneData is the version of the time zone database that periods and bands are judged by, ""
// where it does not say.
func timeZoneData() string {
	const folder = "/usr/share/zoneinfo/"
	file, err := os.Open(folder + "tzdata.zi")
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	line, err := bufio.NewReader(io.LimitReader(file, 256)).ReadString('\n')
	if err != nil {
		return ""
	}
	version, ok := strings.CutPrefix(strings.TrimSpace(line), "# version ")
	if !ok {
		return ""
	}
	return version
}

// rateOffline rates a file of events and names those that are rejected on standard error. Closes
// count where closing is set.
func rateOffline(catalogPath, eventsPath string, closing bool, stdin io.Reader, stderr io.Writer,
) (*rating.Ledger, *catalog.Catalog, error) {
	documents, err := readCatalog(catalogPath)
	if err != nil {
		return nil, nil, err
	}
	prices, err := catalog.New(documents)
	if err != nil {
		return nil, nil, err
	}
	events, done, err := openEvents(eventsPath, stdin)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	offline := rating.NewOffline(prices)
	if closing {
		offline.ObeyCloses()
	}
	if err := rateEvents(events, offline, stderr); err != nil {
		return nil, nil, err
	}
	return offline.Ledger(), prices, nil
}
