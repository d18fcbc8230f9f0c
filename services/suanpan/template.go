package main

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/services/biller"
)

// checkTemplates renders the templates that are about to be applied with examples of messages. The
// errors name file and line.
func checkTemplates(results []applied) []error {
	var errs []error
	for _, r := range results {
		t, ok := r.document.Template()
		if !ok || t.Deleted || r.Status == "unchanged" {
			continue
		}
		if err := biller.CheckTemplate(t); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r.document.At, err))
		}
	}
	return errs
}

// followTemplates takes the templates of the catalog for e-mail.
func followTemplates(log *slog.Logger, templates *biller.Templates, prices *pipeline.Prices,
	now time.Time,
) {
	if err := templates.Follow(prices.Catalog, now.Unix()); err != nil {
		log.Warn("built-in words are used instead of templates that fail", "error", err)
	}
}
