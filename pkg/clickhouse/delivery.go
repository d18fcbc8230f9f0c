package clickhouse

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/suanpan/suanpan/pkg/notify"
)

// Deliveries keeps messages on their way to their receivers.
type Deliveries struct{ store *Store }

// Deliveries returns what keeps deliveries.
func (s *Store) Deliveries() *Deliveries { return &Deliveries{s} }

// Add keeps deliveries: all of them, or after an error any part.
func (d *Deliveries) Add(ctx context.Context, deliveries []notify.Delivery) error {
	texts := make([]string, len(deliveries))
	for i := range deliveries {
		text, err := json.Marshal(&deliveries[i])
		if err != nil {
			return fmt.Errorf("encode delivery %s: %w", deliveries[i].Message.ID, err)
		}
		texts[i] = string(text)
	}
	type delivery = notify.Delivery
	return d.store.insert(ctx, "deliveries", len(deliveries),
		field{
			"message", "String", columnOf(deliveries, func(x *delivery) string { return x.Message.ID }),
		},
		field{"channel", "String", columnOf(deliveries, func(x *delivery) string { return x.Channel })},
		field{
			"state", "String", columnOf(deliveries, func(x *delivery) string { return string(x.State) }),
		},
		field{
			"next", "DateTime64(3, 'UTC')",
			columnOf(deliveries, func(x *delivery) time.Time { return epoch(x.Next) }),
		},
		field{
			"attempts", "UInt32",
			columnOf(deliveries, func(x *delivery) uint32 { return uint32(x.Attempts) }),
		},
		field{
			"outcome", "String",
			columnOf(deliveries, func(x *delivery) string { return string(x.Outcome) }),
		},
		field{"delivery", "String", texts},
		field{
			"version", "UInt64", columnOf(deliveries, func(x *delivery) uint64 { return x.Version() }),
		})
}

// epoch is an instant that a column can hold.
func epoch(t time.Time) time.Time {
	if t.IsZero() {
		return time.Unix(0, 0).UTC()
	}
	return t.UTC()
}

// Due returns deliveries that are pending and whose next attempt is not after now.
func (d *Deliveries) Due(ctx context.Context, now time.Time, limit, perChannel int) (
	[]notify.Delivery, error,
) {
	query := fmt.Sprintf(`SELECT delivery FROM deliveries FINAL WHERE state = 'pending' AND next <= %s
		ORDER BY next, message, channel LIMIT %d BY channel LIMIT %d`, quoteTime(now), perChannel, limit)
	return d.read(ctx, query)
}

// List returns deliveries, of one message or of all for "": the newest states.
func (d *Deliveries) List(ctx context.Context, message string, limit int) (
	[]notify.Delivery, error,
) {
	query := "SELECT delivery FROM deliveries FINAL WHERE 1"
	if message != "" {
		query += " AND message = " + quote(message)
	}
	return d.read(ctx, query+fmt.Sprintf(" ORDER BY message, channel LIMIT %d", limit))
}

func (d *Deliveries) read(ctx context.Context, query string) ([]notify.Delivery, error) {
	var out []notify.Delivery
	err := d.store.each(ctx, query, func(row scanner) error {
		var text string
		if err := row.Scan(&text); err != nil {
			return err
		}
		var one notify.Delivery
		if err := json.Unmarshal([]byte(text), &one); err != nil {
			return fmt.Errorf("decode delivery: %w", err)
		}
		out = append(out, one)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read deliveries: %w", err)
	}
	return out, nil
}

// Record keeps the log's entry of an attempt, and then the new state of its delivery: an entry that
// is written again is the same one.
func (d *Deliveries) Record(ctx context.Context, one notify.Delivery, a notify.Attempt) error {
	err := d.store.insert(ctx, "delivery_log", 1,
		field{"message", "String", []string{a.Message}},
		field{"channel", "String", []string{a.Channel}},
		field{"tenant", "String", []string{a.Tenant}},
		field{"type", "String", []string{a.Type}},
		field{"round", "UInt32", []uint32{uint32(a.Round)}},
		field{"attempt", "UInt32", []uint32{uint32(a.Number)}},
		field{"time", "DateTime64(3, 'UTC')", []time.Time{epoch(a.Time)}},
		field{"outcome", "String", []string{string(a.Outcome)}},
		field{"status", "Int32", []int32{int32(a.Status)}},
		field{"latency_ms", "UInt32", []uint32{uint32(a.Latency.Milliseconds())}},
		field{"error", "String", []string{a.Error}})
	if err != nil {
		return err
	}
	return d.Add(ctx, []notify.Delivery{one})
}

// Disable keeps that a receiver wants no more messages, until somebody enables it again.
func (d *Deliveries) Disable(ctx context.Context, channel string, at time.Time) error {
	return d.able(ctx, channel, true, at)
}

// Enable lets a receiver have messages again.
func (d *Deliveries) Enable(ctx context.Context, channel string, at time.Time) error {
	return d.able(ctx, channel, false, at)
}

func (d *Deliveries) able(ctx context.Context, channel string, disabled bool, at time.Time) error {
	return d.store.insert(ctx, "disabled_channels", 1,
		field{"channel", "String", []string{channel}},
		field{"disabled", "Bool", []bool{disabled}},
		field{"at", "DateTime64(3, 'UTC')", []time.Time{epoch(at)}},
		field{"version", "UInt64", []uint64{uint64(at.UnixNano())}})
}

// Disabled returns which of the channels are disabled.
func (d *Deliveries) Disabled(ctx context.Context, channels []string) (map[string]bool, error) {
	quoted := make([]string, len(channels))
	for i, c := range channels {
		quoted[i] = quote(c)
	}
	disabled := make(map[string]bool)
	for _, list := range lists(quoted) {
		query := "SELECT channel FROM disabled_channels FINAL WHERE disabled AND channel IN (" +
			strings.TrimSpace(list) + ")"
		err := d.store.each(ctx, query, func(row scanner) error {
			var channel string
			err := row.Scan(&channel)
			disabled[channel] = true
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read disabled receivers: %w", err)
		}
	}
	return disabled, nil
}
