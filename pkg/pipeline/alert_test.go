package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/rating"
)

// alertWorld is a billing log that several read, what they see, and what they told.
type alertWorld struct {
	t         *testing.T
	log       []Record
	fails     map[string]error // by what is asked for
	documents []string         // of the catalog, in its order

	spent   int64 // units of an hour that acme used today
	loads   []alert.Load
	silent  []alert.LastSeen
	newest  time.Time
	letters []alert.Letters
	held    []alert.HeldDocument
	asked   map[string]int

	written map[string]int64 // offsets of alerts by their IDs
	last    int64            // the newest of them
	told    map[string]bool  // by ID: the queue knows what it took
}

func newAlertWorld(t *testing.T, documents ...string) *alertWorld {
	return &alertWorld{
		t: t, fails: make(map[string]error), asked: make(map[string]int),
		written: make(map[string]int64), told: make(map[string]bool), last: -1, newest: noon,
		documents: append([]string{bookText("2026-01-01T00:00:00Z", "2"), acme, blue}, documents...),
	}
}

func (w *alertWorld) do(what string) error {
	w.asked[what]++
	return w.fails[what]
}

func (w *alertWorld) Append(_ context.Context, records ...Record) error {
	if err := w.do("append"); err != nil {
		return err
	}
	w.log = append(w.log, records...)
	return nil
}

func (w *alertWorld) TouchedDays(_ context.Context, _ time.Time, from int64) (
	[]TenantDay, time.Time, error,
) {
	day := noon.Unix() / secondsOfDay
	if day < from {
		return nil, noon, w.do("touched")
	}
	return []TenantDay{{"acme", day}, {"blue", day}}, noon, w.do("touched")
}

// DayUses is what acme used on the day of noon.
func (w *alertWorld) DayUses(_ context.Context, of *DayQuery, visit func(*alert.DayUse)) error {
	day := noon.Unix() / secondsOfDay
	if !slices.Contains(of.Tenants, "acme") || day < of.From || day >= of.Until {
		return w.do("uses")
	}
	q, err := metering.QuantityOf(big.NewInt(w.spent * 3_600_000_000_000))
	if err != nil {
		w.t.Fatal(err)
	}
	visit(&alert.DayUse{
		UTCDay: day, Charge: &rating.Charge{
			Tenant: "acme", Book: "public", BookVersion: noon.AddDate(0, 0, -4).Truncate(24 * time.Hour).
				Unix(), SKU: "gpu", Purchase: "on_demand", Band: "standard", Period: "2026-01",
		},
		ScopePart: alert.ScopePart{Day: day, Quantity: q},
	})
	return w.do("uses")
}

func (w *alertWorld) WriteAlerts(_ context.Context, alerts []LoggedAlert) error {
	if err := w.do("write"); err != nil {
		return err
	}
	for _, a := range alerts {
		w.written[a.ID], w.last = a.Offset, max(w.last, a.Offset)
	}
	return nil
}

func (w *alertWorld) AlertsWritten(context.Context) (int64, error) { return w.last, nil }

func (w *alertWorld) notify(_ context.Context, alerts []LoggedAlert) error {
	if err := w.do("notify"); err != nil {
		return err
	}
	for _, a := range alerts {
		w.told[a.ID] = true
	}
	return nil
}

func (w *alertWorld) Loads(context.Context, time.Time, time.Duration) ([]alert.Load, error) {
	return w.loads, w.do("loads")
}

func (w *alertWorld) Cards(context.Context, time.Time, time.Time) ([]alert.CardLoad, error) {
	return nil, w.do("cards")
}

func (w *alertWorld) BusyBetween(context.Context, time.Time, time.Time) ([]alert.Busy, error) {
	return nil, w.do("busy")
}

func (w *alertWorld) HourlySpend(context.Context, int64, int64, func(alert.HourSpend) error) error {
	return w.do("spend")
}

func (w *alertWorld) Silent(_ context.Context, now time.Time, after, _ time.Duration) (
	[]alert.LastSeen, time.Time, error,
) {
	var all []alert.LastSeen
	for _, s := range w.silent {
		if now.Sub(time.Unix(s.Until, 0)) >= after {
			all = append(all, s)
		}
	}
	return all, w.newest, w.do("silent")
}

func (w *alertWorld) Letters(context.Context, time.Time) ([]alert.Letters, error) {
	return w.letters, w.do("letters")
}

func (w *alertWorld) HeldDocuments(context.Context) ([]alert.HeldDocument, error) {
	return w.held, w.do("held")
}

// reader reads a log that others append to, from its beginning.
type reader struct {
	world *alertWorld
	next  int
}

func (r *reader) ReadToEnd(context.Context) ([]Record, error) {
	var out []Record
	for ; r.next < len(r.world.log); r.next++ {
		record := r.world.log[r.next]
		record.Offset = int64(r.next)
		out = append(out, record)
	}
	return out, nil
}

func (r *reader) Close() error { return nil }

// decider is one process that decides alerts.
type decider struct {
	*Alerter
	*Watcher

	catalog *topic
	read    int // documents of the world
	world   *alertWorld
}

// decider starts one, as after a restart.
func (w *alertWorld) decider() *decider {
	documents := new(topic)
	log := NewAlertLog(AlertLogConfig{
		Alerts: w, Log: w, Billing: &reader{world: w}, Notify: w.notify,
	})
	prices := NewPrices(documents, new(topic))
	return &decider{
		Alerter: NewAlerter(AlerterConfig{Spending: w, Alerts: log, Prices: prices}),
		Watcher: NewWatcher(WatcherConfig{Watched: w, Alerts: log, Prices: prices}),
		catalog: documents, world: w,
	}
}

// refresh makes the documents known that were added since.
func (d *decider) refresh() {
	for ; d.read < len(d.world.documents); d.read++ {
		d.catalog.put(noon.Add(-time.Hour), d.world.documents[d.read],
			Header{HeaderBatch, []byte("first")}, Header{HeaderReplay, []byte("1")})
	}
}

func (d *decider) budgets(now time.Time) error {
	d.refresh()
	_, err := d.Alerter.Step(d.world.t.Context(), now)
	return err
}

func (d *decider) policies(now time.Time) error {
	d.refresh()
	_, err := d.Watcher.Step(d.world.t.Context(), now)
	return err
}

// says is what was told.
func (w *alertWorld) says() string { return strings.Join(sortedKeys(w.told), "; ") }

func (w *alertWorld) check(what, want string) {
	w.t.Helper()
	if got := w.says(); got != want {
		w.t.Errorf("%s: told\n%s\nwant\n%s", what, got, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const dayBudget = `{"kind":"Budget","name":"b","tenant":"acme","period":"day","amount":"10",` +
	`"effective_from":%q,"notify":[{"log":true},{"alertmanager":"http://am"}]%s}`

func TestAlerter_firesAThresholdOnceAndResolvesIt(t *testing.T) {
	w := newAlertWorld(t, fmt.Sprintf(dayBudget, "2026-01-02T00:00:00Z", ""))
	d, other := w.decider(), w.decider()
	w.spent = 4 // 8 of 10
	must(t, d.budgets(noon))
	must(t, other.budgets(noon))
	first := "budget,b,1767312000,2026-01-05,0.8"
	w.check("exactly at 80 %", first+"")
	w.spent = 3 // seconds were voided
	must(t, other.budgets(noon))
	must(t, d.budgets(noon))
	w.check("spend fell", first+"; "+first+",resolved")
	w.spent = 5
	must(t, d.budgets(noon))
	must(t, w.decider().budgets(noon))
	second := "budget,b,1767312000,2026-01-05,1"
	w.check("80 % again, and 100 %", first+"; "+first+",resolved; "+second+"")
	must(t, d.budgets(noon.Add(-24*time.Hour))) // the clock goes back
	w.check("a day before", first+"; "+first+",resolved; "+second+"")
	w.spent = 0
	must(t, d.budgets(noon.Add(24*time.Hour)))
	w.check("the day is over", first+"; "+first+",resolved; "+second+"; "+second+
		",resolved")
}

func TestAlerter_whatIsOverIsToldToAlertmanagerAlone(t *testing.T) {
	w := newAlertWorld(t, fmt.Sprintf(dayBudget, "2026-01-02T00:00:00Z", ""))
	d := w.decider()
	w.spent = 4
	must(t, d.budgets(noon))
	must(t, d.budgets(noon.Add(24*time.Hour)))
	history, err := AlertHistory(t.Context(), &reader{world: w})
	must(t, err)
	if history.Len() != 0 {
		t.Errorf("%d alerts fire", history.Len())
	}
	text := string(w.log[1].Value)
	if strings.Contains(text, `"log"`) || !strings.Contains(text, "http://am") ||
		!strings.Contains(text, `"why":"over"`) {
		t.Errorf("the end of the period is %s", text)
	}
}

func TestAlerter_aBudgetThatChangesOrEndsResolves(t *testing.T) {
	w := newAlertWorld(t, fmt.Sprintf(dayBudget, "2026-01-02T00:00:00Z", ""))
	d := w.decider()
	w.spent = 4
	must(t, d.budgets(noon))
	w.documents = append(w.documents, fmt.Sprintf(
		strings.Replace(dayBudget, `"10"`, `"8"`, 1), "2026-01-05T12:00:00Z", ""))
	must(t, d.budgets(noon))
	old, now := "budget,b,1767312000,2026-01-05,0.8", "budget,b,1767614400,2026-01-05,"
	w.check("lowered", old+"; "+old+",resolved; "+now+"0.8; "+now+"1")
	w.documents = append(w.documents,
		fmt.Sprintf(dayBudget, "2026-01-05T12:00:01Z", `,"deleted":true`))
	must(t, d.budgets(noon.Add(time.Second)))
	w.check("deleted", old+"; "+old+",resolved; "+now+"0.8; "+now+"0.8,resolved; "+now+
		"1; "+now+"1,resolved")
}

func TestAlertLog_crashBetweenDecisionAndSending(t *testing.T) {
	for _, what := range []string{"append", "notify", "write"} {
		w := newAlertWorld(t, fmt.Sprintf(dayBudget, "2026-01-02T00:00:00Z", ""))
		w.spent = 4
		w.fails[what] = errFake
		d := w.decider()
		if err := d.budgets(noon); !errors.Is(err, errFake) {
			t.Errorf("%s fails: %v", what, err)
		}
		w.fails = nil
		must(t, w.decider().budgets(noon)) // another one
		must(t, d.budgets(noon))           // the same goes on
		w.check(what, "budget,b,1767312000,2026-01-05,0.8")
		clear(w.told)
		must(t, w.decider().budgets(noon))
		w.check("after all was written", "")
	}
}

// A month ends for many budgets at once: they are not handed on one by one.
func TestAlertLog_handsManyOnTogether(t *testing.T) {
	const many = 2*alertBatch + 1
	w := newAlertWorld(t)
	for i := range many {
		w.documents = append(w.documents, strings.Replace(
			fmt.Sprintf(dayBudget, "2026-01-02T00:00:00Z", ""), `"b"`, fmt.Sprintf(`"b%d"`, i), 1))
	}
	w.spent = 4
	d := w.decider()
	must(t, d.budgets(noon))
	if len(w.told) != many || len(w.written) != many || w.asked["notify"] != 3 ||
		w.asked["write"] != 3 {
		t.Errorf("%d were told and %d written, in %d and %d calls", len(w.told), len(w.written),
			w.asked["notify"], w.asked["write"])
	}
}
