package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/csv"
	"github.com/suanpan/suanpan/pkg/billing/html"
	"github.com/suanpan/suanpan/pkg/billing/pdf"
	"github.com/suanpan/suanpan/pkg/billing/ubl"
	"github.com/suanpan/suanpan/pkg/clickhouse"
	"github.com/suanpan/suanpan/pkg/daemon"
	"github.com/suanpan/suanpan/services/fonts"
)

// rendering is a form that documents are downloaded in.
type rendering struct {
	extension string
	render    func(*billing.Document) ([]byte, error)
}

func renderings() map[string]rendering {
	return map[string]rendering{
		"json": {".json", encodeDocument},
		"csv":  {".csv", csv.Render},
		"html": {".html", html.Render},
		"pdf":  {".pdf", renderPDF()},
		"ubl":  {".xml", ubl.Render},
	}
}

// renderPDF looks for the font when it is first needed.
func renderPDF() func(*billing.Document) ([]byte, error) {
	var font []byte
	return func(d *billing.Document) ([]byte, error) {
		if font == nil {
			var err error
			if font, err = fonts.Find(); err != nil {
				return nil, err
			}
		}
		return pdf.Render(d, font)
	}
}

// downloadOptions say what is downloaded, and where to.
type downloadOptions struct {
	store  storeFlags
	filter clickhouse.EntryFilter
	format string
	out    string
}

func invoiceDownloadCommand() *cobra.Command {
	var o downloadOptions
	formats := strings.Join(slices.Sorted(maps.Keys(renderings())), ", ")
	cmd := &cobra.Command{
		Use:   "download [DOCUMENT] --format FORMAT [--out FILE|DIR]",
		Short: "Write documents as PDF, HTML, CSV, JSON or UBL (e-invoice)",
		Long: `Write documents as PDF, HTML, CSV, JSON or UBL 2.1 for EN 16931 and Peppol. All are
renderings of one immutable JSON document: they are the same, byte for byte, whenever they are made.
Without DOCUMENT all issued ones that the flags choose are written to the folder --out.`,
		Example: `  suanpan invoice download INV-2026-17 --format pdf --out INV-2026-17.pdf
  suanpan invoice download --period 2026-01 --format ubl --out invoices`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			form, ok := renderings()[o.format]
			if !ok {
				return fmt.Errorf("--format %q is none of %s (%w)", o.format, formats, errUsage)
			}
			if len(args) == 1 {
				return downloadOne(cmd, &o, args[0], form)
			}
			return downloadAll(cmd, &o, form)
		},
	}
	o.store.register(cmd.Flags())
	registerEntryFilter(cmd.Flags(), &o.filter)
	cmd.Flags().StringVar(&o.format, "format", "pdf", "`form`: "+formats)
	cmd.Flags().StringVar(&o.out, "out", "", "`FILE` or folder to write to (default: standard output)")
	return cmd
}

func downloadOne(cmd *cobra.Command, o *downloadOptions, name string, form rendering) error {
	entry, err := oneEntry(cmd.Context(), &o.store, name)
	if err != nil {
		return err
	}
	data, err := form.render(&entry.Document)
	if err != nil {
		return err
	}
	if o.out == "" {
		if daemon.Terminal(cmd.OutOrStdout()) && form.extension == ".pdf" {
			return fmt.Errorf("a PDF is not for a terminal: name a file with --out (%w)", errUsage)
		}
		_, err = cmd.OutOrStdout().Write(data)
		return err
	}
	path := o.out
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, fileName(entry)+form.extension)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return fmt.Errorf("write document: %w", err)
	}
	return nil
}

func downloadAll(cmd *cobra.Command, o *downloadOptions, form rendering) error {
	if o.out == "" {
		return fmt.Errorf("many documents need a folder: --out DIR (%w)", errUsage)
	}
	if o.filter.Status == "" {
		o.filter.Status = string(billing.Issued)
	}
	entries, err := readEntries(cmd.Context(), &o.store, o.filter)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return fmt.Errorf("make folder for documents: %w", err)
	}
	bar := daemon.NewProgress(cmd.ErrOrStderr(), "documents", int64(len(entries)))
	defer bar.Close()
	var errs []error
	for i := range entries {
		data, err := form.render(&entries[i].Document)
		if err == nil {
			err = os.WriteFile(filepath.Join(o.out, fileName(&entries[i])+form.extension), data, 0o644)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("document %s: %w", entries[i].ID, err))
		}
		bar.Add(1)
	}
	return errors.Join(errs...)
}

// fileName is the name of a document's file without its extension: the number with the seller, as
// sellers may share a series, or the ID of a draft.
func fileName(e *billing.Entry) string {
	if e.Number == "" {
		return strings.TrimSuffix(documentFile(&e.Document), ".json")
	}
	name := e.Number
	if e.Seller != nil {
		name = e.Seller.Name + "-" + name
	}
	return strings.ReplaceAll(name, "/", "%2F")
}

func oneEntry(ctx context.Context, store *storeFlags, name string) (*billing.Entry, error) {
	rows, err := store.open(ctx)
	if err != nil {
		return nil, err
	}
	entry, err := entryNamed(ctx, rows, name)
	return entry, errors.Join(err, rows.Close())
}
