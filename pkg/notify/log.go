package notify

import (
	"context"
	"log/slog"
)

// logger writes messages to the log, where an operator or a collector finds them.
type logger struct{ log *slog.Logger }

// Send writes one line. It cannot fail.
func (l *logger) Send(ctx context.Context, m Message) error {
	level := slog.LevelInfo
	switch m.Severity {
	case Warning:
		level = slog.LevelWarn
	case Critical:
		level = slog.LevelError
	case Info:
	}
	evidence := make([]any, len(m.Evidence))
	for i, f := range m.Evidence {
		evidence[i] = slog.String(f.Name, f.Value)
	}
	l.log.LogAttrs(ctx, level, m.Title,
		slog.String("message", m.ID), slog.String("type", m.Type), slog.String("alert", m.Alert),
		slog.String("status", string(m.Status)), slog.String("tenant", m.Tenant),
		slog.Time("time", m.Time), slog.String("summary", m.Summary),
		slog.Group("evidence", evidence...), slog.String("query", m.Query))
	return nil
}
