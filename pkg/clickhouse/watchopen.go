package clickhouse

import (
	"context"
	"fmt"
	"time"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/alert"
)

// Letters counts the dead letters whose records the log received at or after an instant, and that
// nobody sent again: by key and reason, in this order. A key is whatever bytes the record had.
func (s *Store) Letters(ctx context.Context, since time.Time) ([]alert.Letters, error) {
	query := `SELECT key, reason, toInt64(count()), toInt64(toUnixTimestamp(max(record_time)))
		FROM dead_letters FINAL
		WHERE record_time >= ` + quoteTime(since) + `
			AND (topic, partition, offset) NOT IN (
				SELECT topic, partition, offset FROM dead_letter_retries)
		GROUP BY key, reason ORDER BY key, reason`
	var all []alert.Letters
	err := s.each(ctx, query, func(row scanner) error {
		var l alert.Letters
		err := row.Scan(&l.Tenant, &l.Reason, &l.Count, &l.Newest)
		all = append(all, l)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("count dead letters: %w", err)
	}
	return all, nil
}

// documentID is a document's ID in a query.
const documentID = `concat(tenant, ',', contract, ',', currency, ',', period,
	if(credit = '', '', ','), credit)`

// HeldDocuments returns the documents that wait for a person to issue or void them, the oldest
// first.
func (s *Store) HeldDocuments(ctx context.Context) ([]alert.HeldDocument, error) {
	query := `SELECT tenant, ` + documentID + ` AS id, period, toInt64(toUnixTimestamp(at)), why
		FROM documents FINAL WHERE status = ` + quote(string(billing.Held)) + `
		ORDER BY at, id`
	var all []alert.HeldDocument
	err := s.each(ctx, query, func(row scanner) error {
		var d alert.HeldDocument
		err := row.Scan(&d.Tenant, &d.ID, &d.Period, &d.Since, &d.Why)
		all = append(all, d)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read held documents: %w", err)
	}
	return all, nil
}
