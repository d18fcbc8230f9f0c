package sim

import (
	"context"
	"fmt"
	"hash"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/notify"
	"github.com/suanpan/suanpan/pkg/notify/notifytest"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/pkg/rating"
	"github.com/suanpan/suanpan/services/biller"
)

// alertWorld is usage, budgets that change, and billers that decide alerts and deliver them, in a
// world that one seed decides. A second of the one SKU costs 1.
type alertWorld struct {
	rng      *rand.Rand
	now      time.Time
	faults   bool
	bug      string
	trace    hash.Hash64
	verbose  bool
	problems []string
	coverage map[string]int

	zone     *time.Location
	catalog  []pipeline.Record
	truth    *pipeline.Prices // reads it without faults
	billing  []pipeline.Record
	hours    []usedRow // as they were written
	seenRows []usedRow // what seen returned last, and when, of how many
	seenAt   time.Time
	seenOf   int
	newest   int64 // offset of an alert that was written; -1: none
	queue    *notifytest.Store
	received map[string]map[string]int // times, by alert and status, and by the message's ID
	billers  []*alertBiller
	nested   bool // a rival is at work in the middle of somebody's append
}

// usedRow is a row of the store: seconds of a tenant's project in an hour.
type usedRow struct {
	tenant, project string
	hour            int64 // of UTC since 1970
	seconds         int64
	version         int
	began, lands    time.Time // of its statement; it is seen from when it lands
}

// alertBiller is one process.
type alertBiller struct {
	w         *alertWorld
	name      string
	skew      time.Duration
	prices    *pipeline.Prices
	alerter   *pipeline.Alerter
	deliverer *notify.Deliverer
	due       time.Time
}

// crashed is what a process panics with where it dies.
type crashed struct{ name string }

func newAlertWorld(seed uint64, bug string, verbose bool) *alertWorld {
	w := &alertWorld{
		rng: rand.New(rand.NewPCG(seed, 0xa1e7)), bug: bug, verbose: verbose, trace: fnv.New64a(),
		coverage: make(map[string]int), newest: -1,
		queue: notifytest.NewStore(), received: make(map[string]map[string]int),
		faults: true,
	}
	zones := []string{"UTC", "Asia/Kolkata", "Asia/Kathmandu", "Europe/Berlin", "America/New_York"}
	name := zones[w.rng.IntN(len(zones))]
	zone, err := time.LoadLocation(name)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	w.zone = zone
	// Two of the days are 23 or 25 hours long in Berlin or New York; each has a month's end.
	starts := []string{"2026-01-30T09:00:00Z", "2026-03-28T20:00:00Z", "2026-10-31T12:00:00Z"}
	w.now, err = time.Parse(time.RFC3339, starts[w.rng.IntN(len(starts))])
	if err != nil {
		panic("BUG: " + err.Error())
	}
	w.queue.Fault = func(string) error {
		if w.chance(10) {
			return errFault
		}
		return nil
	}
	w.document(fmt.Sprintf(`{"kind":"PriceBook","name":"public","currency":"EUR","timezone":%q,`+
		`"effective_from":"2025-01-01T00:00:00Z","prices":[{"sku":"gpu","per":"second","price":"1"}]}`,
		name), true)
	for _, tenant := range []string{"acme", "blue"} {
		w.document(fmt.Sprintf(`{"kind":"Tenant","name":%q,"price_book":"public",`+
			`"effective_from":"2025-01-01T00:00:00Z"}`, tenant), true)
	}
	w.truth = pipeline.NewPrices(&alertTail{log: &w.catalog}, &alertTail{log: new([]pipeline.Record)})
	for i := range 2 {
		w.billers = append(w.billers, w.newBiller(fmt.Sprintf("biller-%d", i)))
	}
	return w
}

func (w *alertWorld) chance(percent int) bool { return w.faults && w.rng.IntN(100) < percent }

func (w *alertWorld) event(format string, args ...any) {
	line := fmt.Sprintf("%s "+format+"\n",
		append([]any{w.now.Format("02 15:04:05")}, args...)...)
	_, _ = w.trace.Write([]byte(line))
	if w.verbose {
		_, _ = os.Stderr.WriteString(line)
	}
}

func (w *alertWorld) fail(format string, args ...any) {
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

func (w *alertWorld) document(text string, replay bool) {
	r := pipeline.Record{
		Offset: int64(len(w.catalog)), Value: []byte(text), Time: w.now,
		Headers: []pipeline.Header{{Key: pipeline.HeaderBatch, Value: fmt.Append(nil, len(w.catalog))}},
	}
	if replay {
		r.Headers = append(r.Headers, pipeline.Header{Key: pipeline.HeaderReplay, Value: []byte("1")})
	}
	w.catalog = append(w.catalog, r)
}

func (w *alertWorld) newBiller(name string) *alertBiller {
	b := &alertBiller{
		w: w, name: name, due: w.now,
		prices: pipeline.NewPrices(&alertTail{log: &w.catalog}, &alertTail{log: new([]pipeline.Record)}),
	}
	take := biller.Take(notify.NewQueue(w.queue), func(string) string { return "en" })
	b.alerter = pipeline.NewAlerter(pipeline.AlerterConfig{
		Spending: b, Prices: b.prices, Alerts: pipeline.NewAlertLog(pipeline.AlertLogConfig{
			Alerts: b, Log: b, Billing: &alertTail{log: &w.billing}, Source: "/" + name,
			Notify: func(ctx context.Context, alerts []pipeline.LoggedAlert) error {
				return b.notify(ctx, alerts, take)
			},
		}),
	})
	b.deliverer = notify.NewDeliverer(w.queue, w.open, slog.New(slog.DiscardHandler),
		notify.DelivererOptions{Concurrency: 1})
	return b
}

// dies ends the process, now and then.
func (b *alertBiller) dies(where string) {
	if b.w.chance(2) {
		b.w.coverage["crash "+where]++
		panic(crashed{where})
	}
}

// TouchedDays implements [pipeline.Spending]. A row is told by the time of its statement, which may
// be up to a minute and a half before anybody sees it.
func (b *alertBiller) TouchedDays(_ context.Context, since time.Time, from int64) (
	days []pipeline.TenantDay, next time.Time, err error,
) {
	const landing = 2 * time.Minute
	next = b.w.now.Add(-landing)
	if b.w.bug == "no overlap" {
		next = b.w.now
	}
	if b.w.chance(3) {
		return nil, time.Time{}, errFault
	}
	for _, r := range b.w.hours {
		day := pipeline.TenantDay{Tenant: r.tenant, Day: r.hour / 24}
		if !since.IsZero() && !r.lands.After(b.w.now) && !r.began.Before(since) && day.Day >= from &&
			!slices.Contains(days, day) {
			days = append(days, day)
		}
	}
	b.w.event("%s since %s from %d: %v", b.name, since.Format("02 15:04:05"), from, days)
	b.dies("after reading days")
	return days, next, nil
}

// DayUses implements [pipeline.Spending].
func (b *alertBiller) DayUses(_ context.Context, of *pipeline.DayQuery,
	visit func(*alert.DayUse),
) error {
	rows := b.w.seen()
	if b.w.bug == "old rows" {
		rows = b.w.seenBy(b.w.now.Add(-4 * time.Minute))
	}
	for _, r := range rows {
		day := r.hour / 24
		if !slices.Contains(of.Tenants, r.tenant) || day < of.From || day >= of.Until {
			continue
		}
		local := time.Unix(r.hour*3600, 0).In(b.w.zone)
		u := alert.DayUse{UTCDay: day, Charge: b.w.charge(r.tenant, local)}
		u.Day, u.Quantity = localDay(local), metering.HeldFor(1000, r.seconds)
		if of.Scoped {
			u.Project = r.project
		}
		visit(&u)
	}
	b.w.event("%s reads %v %d-%d scoped %v", b.name, of.Tenants, of.From, of.Until, of.Scoped)
	if b.w.chance(3) {
		return errFault
	}
	b.dies("after reading uses")
	return nil
}

func localDay(local time.Time) int64 {
	year, month, day := local.Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / 86_400
}

func (w *alertWorld) charge(tenant string, local time.Time) *rating.Charge {
	book := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	return &rating.Charge{
		Tenant: tenant, Book: "public", BookVersion: book, SKU: "gpu", Purchase: "on_demand",
		Band: "standard", Period: local.Format("2006-01"),
	}
}

// hourKey is what a row is of.
type hourKey struct {
	tenant, project string
	hour            int64
}

func (r *usedRow) key() hourKey { return hourKey{r.tenant, r.project, r.hour} }

// seen are the rows that can be seen: of each hour of a project the newest state that landed.
func (w *alertWorld) seen() []usedRow {
	if w.seenAt.Equal(w.now) && w.seenOf == len(w.hours) {
		return w.seenRows
	}
	w.seenRows, w.seenAt, w.seenOf = w.seenBy(w.now), w.now, len(w.hours)
	return w.seenRows
}

func (w *alertWorld) seenBy(now time.Time) []usedRow {
	at := make(map[hourKey]int)
	var out []usedRow
	for _, r := range w.hours {
		if r.lands.After(now) {
			continue
		}
		k := r.key()
		if i, ok := at[k]; ok {
			if out[i].version < r.version {
				out[i] = r
			}
			continue
		}
		at[k] = len(out)
		out = append(out, r)
	}
	return out
}

// Append implements [pipeline.Appender]. A rival may be faster, the answer may be lost, and a part
// may be all that was appended.
func (b *alertBiller) Append(ctx context.Context, records ...pipeline.Record) error {
	w := b.w
	if w.chance(10) && !w.nested {
		w.nested = true
		w.coverage["rival in between"]++
		for _, rival := range w.billers {
			if rival != b {
				rival.turn()
			}
		}
		w.nested = false
	}
	n := len(records)
	var err error
	if w.chance(15) {
		n, err = w.rng.IntN(n+1), errTimeout
		w.coverage["append done in part, or all, but failed"]++
	}
	b.dies("before appending")
	for _, r := range records[:n] {
		r.Offset, r.Time = int64(len(w.billing)), w.now
		w.billing = append(w.billing, r)
		w.event("%s appends %s", b.name, r.Value)
		b.check(&r)
	}
	b.dies("after appending")
	return err
}

func (b *alertBiller) notify(ctx context.Context, alerts []pipeline.LoggedAlert,
	take func(context.Context, []pipeline.LoggedAlert) error,
) error {
	b.dies("before taking")
	alerts = slices.Clone(alerts)
	for i := range alerts {
		if b.w.bug == "ids of its own" {
			alerts[i].ID += "," + strings.TrimPrefix(b.name, "biller-")
		}
	}
	if b.w.bug == "write first" {
		if err := b.WriteAlerts(ctx, alerts); err != nil {
			return err
		}
		b.dies("before taking what was written")
	}
	if err := take(ctx, alerts); err != nil {
		return err
	}
	b.dies("after taking")
	return nil
}

// WriteAlerts implements [pipeline.Alerts].
func (b *alertBiller) WriteAlerts(_ context.Context, alerts []pipeline.LoggedAlert) error {
	if b.w.chance(5) {
		return errFault
	}
	for i := range alerts {
		b.w.newest = max(b.w.newest, alerts[i].Offset)
	}
	b.dies("after writing")
	return nil
}

// AlertsWritten implements [pipeline.Alerts].
func (b *alertBiller) AlertsWritten(context.Context) (int64, error) {
	if b.w.chance(5) {
		return 0, errFault
	}
	return b.w.newest, nil
}

// open is the one receiver that there is. It may fail before it has a message, and after.
func (w *alertWorld) open(catalog.Channel) (notify.Channel, error) { return alertReceiver{w}, nil }

type alertReceiver struct{ w *alertWorld }

// Send implements [notify.Channel].
func (r alertReceiver) Send(_ context.Context, m notify.Message) error {
	if r.w.chance(20) {
		return errFault
	}
	key := m.Alert + " " + string(m.Status)
	if r.w.received[key] == nil {
		r.w.received[key] = make(map[string]int)
	}
	r.w.received[key][m.ID]++
	r.w.event("received %s as %s", key, m.ID)
	if r.w.chance(20) {
		r.w.coverage["received, and the answer lost"]++
		return errTimeout
	}
	return nil
}

// alertTail reads a log from its start.
type alertTail struct {
	log  *[]pipeline.Record
	next int
}

// ReadToEnd implements [pipeline.Tail].
func (t *alertTail) ReadToEnd(context.Context) ([]pipeline.Record, error) {
	out := (*t.log)[t.next:]
	t.next = len(*t.log)
	return out, nil
}

// Close implements [pipeline.Tail].
func (t *alertTail) Close() error { return nil }

// decisions are the alerts of the billing log, all that were appended.
func (w *alertWorld) decisions() []*alert.Alert {
	var out []*alert.Alert
	for _, r := range w.billing {
		parsed, err := billing.ParseRecord(r.Value)
		if err != nil || parsed.Alert == nil {
			w.fail("the billing log has a record that is no alert: %s, %v", r.Value, err)
			continue
		}
		out = append(out, parsed.Alert)
	}
	return out
}
