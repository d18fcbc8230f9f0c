package pipeline

import (
	"context"
	"fmt"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/schemas"
)

// Alerts keeps what was decided, for those who look it up.
type Alerts interface {
	// WriteAlerts writes alerts durably, each with its offset in the billing topic. Writing one
	// again changes nothing.
	WriteAlerts(ctx context.Context, alerts []LoggedAlert) error
	// AlertsWritten is the offset of the newest alert that was written; -1 if there is none.
	AlertsWritten(ctx context.Context) (int64, error)
}

// alertBatch is how many alerts are handed on together: a month ends for many budgets at once.
const alertBatch = 500

// LoggedAlert is an alert and its place in the billing topic.
type LoggedAlert struct {
	alert.Alert
	Offset int64
}

// AlertLogConfig says where alerts are decided and who takes them. All but Source are required.
type AlertLogConfig struct {
	Alerts  Alerts
	Log     Appender // takes decisions
	Billing Tail     // the billing topic
	// Notify takes alerts for delivery: all of them, or after an error any. It is called again until
	// it returns nil, and must know an alert that it took before by its ID.
	Notify func(ctx context.Context, alerts []LoggedAlert) error
	Source string // of the records that it appends; default "/biller"
}

// AlertLog is the alerts of the billing log. A decision is a record of it; of several for one
// change the first counts, and only what is in the log is sent. So each change is told once,
// however many decide and however often they restart. It belongs to one loop, which may have an
// [Alerter] and a [Watcher].
type AlertLog struct {
	config  AlertLogConfig
	history *alert.History
	written int64         // what was written before this one began; -1: nothing
	checked bool          // written is known
	pending []LoggedAlert // in the log, and not yet written and taken for delivery
	taken   int
}

// NewAlertLog returns a log that was not read yet.
func NewAlertLog(config AlertLogConfig) *AlertLog {
	if config.Source == "" {
		config.Source = "/biller"
	}
	return &AlertLog{config: config, history: alert.NewHistory(alert.DefaultRemembered)}
}

// Taken is how many alerts were taken for delivery so far.
func (l *AlertLog) Taken() int { return l.taken }

// Sync reads the billing log to its end, and hands its new alerts on: for delivery, and to the
// store.
func (l *AlertLog) Sync(ctx context.Context) error {
	if !l.checked {
		written, err := l.config.Alerts.AlertsWritten(ctx)
		if err != nil {
			return fmt.Errorf("find the newest alert: %w", err)
		}
		l.written, l.checked = written, true
	}
	err := readAlerts(ctx, l.config.Billing, l.history, func(a *alert.Alert, offset int64) {
		if offset > l.written {
			l.pending = append(l.pending, LoggedAlert{*a, offset})
		}
	})
	if err != nil {
		return err
	}
	for len(l.pending) > 0 {
		some := l.pending[:min(len(l.pending), alertBatch)]
		// Taken for delivery first: what is written is never looked at again.
		if err := l.config.Notify(ctx, some); err != nil {
			return fmt.Errorf("take %d alerts for delivery, %s first: %w", len(some), some[0].ID, err)
		}
		if err := l.config.Alerts.WriteAlerts(ctx, some); err != nil {
			return fmt.Errorf("write %d alerts, %s first: %w", len(some), some[0].ID, err)
		}
		l.pending = l.pending[len(some):]
		l.taken += len(some)
	}
	return nil
}

// Append decides: it appends changes of alerts to the log, and reads back which of them count. It
// returns how many it appended.
func (l *AlertLog) Append(ctx context.Context, alerts []alert.Alert) (int, error) {
	if len(alerts) > 0 {
		if err := AppendAlerts(ctx, l.config.Log, l.config.Source, alerts); err != nil {
			return 0, err
		}
	}
	return len(alerts), l.Sync(ctx)
}

// AppendAlerts appends changes of alerts to the billing log, as decided by a source.
func AppendAlerts(ctx context.Context, log Appender, source string, alerts []alert.Alert) error {
	records := make([]Record, len(alerts))
	for i := range alerts {
		value, err := (&billing.Record{Alert: &alerts[i]}).Encode(source)
		if err != nil {
			return err
		}
		records[i] = Record{
			Topic: schemas.TopicBilling, Key: []byte(alerts[i].Key), Value: value,
		}
	}
	if err := log.Append(ctx, records...); err != nil {
		return fmt.Errorf("append %d alerts: %w", len(records), err)
	}
	return nil
}

// AlertHistory reads the alerts of a billing log that was not read yet.
func AlertHistory(ctx context.Context, log Tail) (*alert.History, error) {
	history := alert.NewHistory(alert.DefaultRemembered)
	return history, readAlerts(ctx, log, history, func(*alert.Alert, int64) {})
}

// readAlerts reads a billing log to its end, and visits the alerts that change something.
func readAlerts(ctx context.Context, log Tail, into *alert.History,
	visit func(a *alert.Alert, offset int64),
) error {
	records, err := log.ReadToEnd(ctx)
	if err != nil {
		return fmt.Errorf("read billing log: %w", err)
	}
	for _, r := range records {
		parsed, err := billing.ParseRecord(r.Value)
		if err != nil || parsed.Alert == nil || !into.Add(parsed.Alert) {
			continue // of somebody else, or decided on before
		}
		visit(parsed.Alert, r.Offset)
	}
	return nil
}

// AlertReport says what a step did.
type AlertReport struct {
	Budgets  int // that were evaluated
	Policies int // that looked
	Decided  int // changes of alerts that were appended
	Taken    int // alerts that were taken for delivery
	Open     int // alerts that are not over
}

// Add adds what another step did.
func (r *AlertReport) Add(other AlertReport) {
	r.Budgets += other.Budgets
	r.Policies += other.Policies
	r.Decided += other.Decided
	r.Taken += other.Taken
	r.Open = other.Open
}
