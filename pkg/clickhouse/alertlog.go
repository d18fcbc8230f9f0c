package clickhouse

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/money"
	"github.com/suanpan/suanpan/pkg/pipeline"
)

type loggedAlert = pipeline.LoggedAlert

// WriteAlerts writes alerts durably. Writing one again changes nothing.
func (s *Store) WriteAlerts(ctx context.Context, alerts []pipeline.LoggedAlert) error {
	texts, labels := make([]string, len(alerts)), make([]map[string]string, len(alerts))
	at, since := make([]int64, len(alerts)), make([]int64, len(alerts))
	for i := range alerts {
		a := &alerts[i]
		text, err := json.Marshal(&a.Alert)
		if err != nil {
			return fmt.Errorf("encode alert %s: %w", a.ID, err)
		}
		texts[i], labels[i] = string(text), a.Labels
		if at[i], err = secondOf(a.At); err != nil {
			return fmt.Errorf("alert %s: %w", a.ID, err)
		}
		since[i] = at[i]
		if a.Since == "" {
			continue
		}
		if since[i], err = secondOf(a.Since); err != nil {
			return fmt.Errorf("alert %s: %w", a.ID, err)
		}
	}
	text := func(name string, of func(*loggedAlert) string) field {
		return field{name, "String", columnOf(alerts, of)}
	}
	decimal := func(name, kind string, places int, of func(*loggedAlert) string) field {
		return field{name, kind, columnOf(alerts, func(a *loggedAlert) string {
			return rounded(of(a), places)
		})}
	}
	return s.insert(ctx, "alerts", len(alerts),
		text("id", func(a *loggedAlert) string { return a.ID }),
		text("key", func(a *loggedAlert) string { return a.Key }),
		text("status", func(a *loggedAlert) string { return string(a.Status) }),
		text("kind", func(a *loggedAlert) string { return string(a.Kind) }),
		text("tenant", func(a *loggedAlert) string { return a.Tenant }),
		text("name", func(a *loggedAlert) string { return a.Name }),
		text("subject", func(a *loggedAlert) string { return a.Subject }),
		field{"labels", labelsType, labels},
		text("period", func(a *loggedAlert) string { return a.Period }),
		text("threshold", func(a *loggedAlert) string { return a.Threshold }),
		decimal("spend", "Decimal(76, 36)", 36, func(a *loggedAlert) string { return a.Spend }),
		decimal("amount", "Decimal(38, 18)", 18, func(a *loggedAlert) string { return a.Amount }),
		text("currency", func(a *loggedAlert) string { return a.Currency }),
		field{"since", "DateTime('UTC')", since},
		field{"at", "DateTime('UTC')", at},
		text("why", func(a *loggedAlert) string { return string(a.Why) }),
		text("by", func(a *loggedAlert) string { return a.By }),
		text("note", func(a *loggedAlert) string { return a.Note }),
		text("query", func(a *loggedAlert) string { return a.Query }),
		field{"alert", "String", texts},
		field{"offset", "Int64", columnOf(alerts, func(a *loggedAlert) int64 { return a.Offset })})
}

func secondOf(instant string) (int64, error) {
	t, err := time.Parse(time.RFC3339Nano, instant)
	return t.Unix(), err
}

// rounded is a decimal of the log as a column holds it; what is none is 0.
func rounded(text string, places int) string {
	a, err := money.ParseSigned(text)
	if err != nil {
		return "0"
	}
	return a.Round(places, money.HalfUp).String()
}

// AlertsWritten is the offset of the newest alert that was written; -1 if there is none.
func (s *Store) AlertsWritten(ctx context.Context) (int64, error) {
	var last int64
	err := s.conn.QueryRow(ctx, "SELECT if(count() = 0, -1, max(offset)) FROM alerts").Scan(&last)
	if err != nil {
		return 0, fmt.Errorf("find the newest alert: %w", err)
	}
	return last, nil
}

// AlertFilter says which alerts are asked for; its zero value is all.
type AlertFilter struct {
	Tenant string
	Status alert.Status // the newest
	Name   string       // of the budget or policy
	Limit  int
}

// Alerts visits alerts in their newest state, the newest first.
func (s *Store) Alerts(ctx context.Context, f AlertFilter, visit func(*alert.Alert) error) error {
	where := []string{"1"}
	equal := func(column, value string) {
		if value != "" {
			where = append(where, column+" = "+quote(value))
		}
	}
	equal("tenant", f.Tenant)
	equal("status", string(f.Status))
	equal("name", f.Name)
	query := "SELECT alert FROM alert_states WHERE " + strings.Join(where, " AND ") +
		" ORDER BY offset DESC"
	if f.Limit > 0 {
		query += fmt.Sprintf(" LIMIT %d", f.Limit)
	}
	err := s.each(ctx, query, func(row scanner) error {
		var text string
		if err := row.Scan(&text); err != nil {
			return err
		}
		a := new(alert.Alert)
		if err := json.Unmarshal([]byte(text), a); err != nil {
			return fmt.Errorf("decode alert: %w", err)
		}
		return visit(a)
	})
	if err != nil {
		return fmt.Errorf("read alerts: %w", err)
	}
	return nil
}
