package clickhouse

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/suanpan/suanpan/pkg/billing"
)

type entry = billing.Entry

// WriteDocuments writes documents durably. Of a document the state of the latest position wins.
func (s *Store) WriteDocuments(ctx context.Context, entries []billing.Entry) error {
	texts := make([]string, len(entries))
	for i := range entries {
		text, err := documentText(&entries[i].Document)
		if err != nil {
			return fmt.Errorf("write document %s: %w", entries[i].ID, err)
		}
		texts[i] = text
	}
	text := func(name string, of func(*entry) string) field {
		return field{name, "String", columnOf(entries, of)}
	}
	amount := func(name string, of func(*entry) string) field {
		return field{name, "Decimal(38, 4)", columnOf(entries, of)}
	}
	return s.insert(ctx, "documents", len(entries),
		text("tenant", func(e *entry) string { return e.Tenant }),
		text("contract", func(e *entry) string { return e.Contract }),
		text("currency", func(e *entry) string { return e.Currency }),
		text("period", func(e *entry) string { return e.Period }),
		text("type", func(e *entry) string { return string(e.Type) }),
		text("credit", func(e *entry) string {
			if e.Cites == nil {
				return ""
			}
			return e.Cites.ID
		}),
		text("status", func(e *entry) string { return string(e.Status) }),
		text("number", func(e *entry) string { return e.Number }),
		text("issue_date", func(e *entry) string { return e.IssueDate }),
		text("due_date", func(e *entry) string { return e.DueDate }),
		amount("subtotal", func(e *entry) string { return e.Subtotal }),
		amount("tax_total", func(e *entry) string { return e.TaxTotal }),
		amount("total", func(e *entry) string { return e.Total }),
		amount("due", func(e *entry) string { return e.Due }),
		field{
			"unrounded_total", "Decimal(38, 12)",
			columnOf(entries, func(e *entry) string { return e.UnroundedTotal }),
		},
		field{
			"why", "Array(String)", columnOf(entries, func(e *entry) []string { return e.Why }),
		},
		text("by", func(e *entry) string { return e.By }),
		text("reason", func(e *entry) string { return e.Reason }),
		field{"document", "String", texts},
		field{
			"at", "DateTime64(3, 'UTC')",
			columnOf(entries, func(e *entry) time.Time { return e.At }),
		},
		field{"offset", "Int64", columnOf(entries, func(e *entry) int64 { return e.Offset })},
		field{"decided", "Int64", columnOf(entries, func(e *entry) int64 { return e.Decided })},
		field{"place", "Int64", columnOf(entries, func(e *entry) int64 { return e.Place })},
		field{"version", "UInt64", columnOf(entries, func(e *entry) uint64 { return uint64(e.Offset) })})
}

// documentText is a document as it is kept, and downloaded: the same bytes each time.
func documentText(d *billing.Document) (string, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(d); err != nil {
		return "", fmt.Errorf("encode: %w", err)
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// EntryFilter chooses documents; "" is all.
type EntryFilter struct {
	Tenant, Period, Status, Type string
	Name                         string // a number or an ID
}

// Entries visits documents in their newest states, by tenant and then as they were decided on.
func (s *Store) Entries(ctx context.Context, filter EntryFilter, visit func(*billing.Entry) error,
) error {
	where := []string{"1"}
	for _, c := range []struct{ column, value string }{
		{"tenant", filter.Tenant},
		{"period", filter.Period},
		{"status", filter.Status},
		{"type", filter.Type},
	} {
		if c.value != "" {
			where = append(where, c.column+" = "+quote(c.value))
		}
	}
	if filter.Name != "" {
		where = append(where,
			"(number = "+quote(filter.Name)+" OR "+documentID+" = "+quote(filter.Name)+")")
	}
	return s.entries(ctx, strings.Join(where, " AND "), visit)
}

func (s *Store) entries(ctx context.Context, where string, visit func(*billing.Entry) error) error {
	query := `SELECT document, status, why, by, reason, at, offset, decided, place FROM documents FINAL
		WHERE ` + where + ` ORDER BY tenant, place`
	err := s.each(ctx, query, func(row scanner) error {
		var e billing.Entry
		var text, status string
		if err := row.Scan(&text, &status, &e.Why, &e.By, &e.Reason, &e.At, &e.Offset,
			&e.Decided, &e.Place); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(text), &e.Document); err != nil {
			return fmt.Errorf("decode document at offset %d: %w", e.Offset, err)
		}
		e.ID, e.Status, e.At = e.Document.ID(), billing.Status(status), e.At.UTC()
		return visit(&e)
	})
	if err != nil {
		return fmt.Errorf("read documents: %w", err)
	}
	return nil
}

// Documents visits the documents of tenants that count: all but voided ones, by tenant and then in
// the order in which they were decided on.
func (s *Store) Documents(ctx context.Context, tenants []string,
	visit func(d *billing.Document) error,
) error {
	names := make([]string, len(tenants))
	for i, t := range tenants {
		names[i] = quote(t)
	}
	for _, list := range lists(names) {
		if err := s.entries(ctx, "status != 'voided' AND tenant IN ("+list+")",
			func(e *billing.Entry) error { return visit(&e.Document) }); err != nil {
			return err
		}
	}
	return nil
}

// DocumentsBefore visits the documents of a tenant that counted when the log had a position, in the
// order in which they were decided on: those that were voided since as well.
func (s *Store) DocumentsBefore(ctx context.Context, tenant string, offset int64,
	visit func(d *billing.Document) error,
) error {
	where := fmt.Sprintf("tenant = %s AND decided < %d AND (status != 'voided' OR offset > %[2]d)",
		quote(tenant), offset)
	return s.entries(ctx, where, func(e *billing.Entry) error { return visit(&e.Document) })
}

// Issued counts the documents that have a number.
func (s *Store) Issued(ctx context.Context) (int64, error) {
	var n uint64
	err := s.conn.QueryRow(ctx, "SELECT countIf(status = 'issued') FROM documents FINAL").Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count issued documents: %w", err)
	}
	return int64(n), nil
}

// Written is the position of the newest state of any document; -1 if there is none.
func (s *Store) Written(ctx context.Context) (int64, error) {
	var last int64
	err := s.conn.QueryRow(ctx, "SELECT if(count() = 0, -1, max(offset)) FROM documents").Scan(&last)
	if err != nil {
		return 0, fmt.Errorf("find the newest document: %w", err)
	}
	return last, nil
}
