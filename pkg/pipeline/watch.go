package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/catalog"
)

// Watched says what policies look at.
type Watched interface {
	// Loads returns what sessions did that were heard of within 5 minutes before now: over their
	// windows that end in (newest - span, newest], where newest is the end of their newest one.
	Loads(ctx context.Context, now time.Time, span time.Duration) ([]alert.Load, error)
	// Cards returns what cards did that were held between two instants.
	Cards(ctx context.Context, from, until time.Time) ([]alert.CardLoad, error)
	// BusyBetween returns how busy what was held between two instants was.
	BusyBetween(ctx context.Context, from, until time.Time) ([]alert.Busy, error)
	// HourlySpend visits what usage cost in the UTC hours from one second (of an hour) to before
	// another: by tenant, currency, hour, where there was any.
	HourlySpend(ctx context.Context, from, until int64, visit func(alert.HourSpend) error) error
	// Silent returns the running sessions of which nothing was heard for after, but something
	// within: and the record time of the newest usage event of all, zero where there is none.
	Silent(ctx context.Context, now time.Time, after, within time.Duration) (
		all []alert.LastSeen, newest time.Time, err error)
	// Letters counts dead letters since an instant that nobody sent again.
	Letters(ctx context.Context, since time.Time) ([]alert.Letters, error)
	// HeldDocuments returns the documents that wait for a person.
	HeldDocuments(ctx context.Context) ([]alert.HeldDocument, error)
}

// What policies look back on.
const (
	heard        = 5 * time.Minute    // sessions that were heard of since then are running
	silentWithin = 7 * 24 * time.Hour // a session of which nothing was heard for longer is given up
	spendDelay   = 10 * time.Minute   // after the end of an hour, what late events may still change
)

// WatcherConfig says how a watcher works. All of it is required.
type WatcherConfig struct {
	Watched Watched
	Alerts  *AlertLog
	Prices  *Prices
}

// Watcher has the policies of the catalog look at what is going on, and decides what fires and
// what is over. Those that look at minutes look at every step, at hours or days once an hour, at
// prices every 10 minutes.
type Watcher struct {
	config WatcherConfig
	damper *alert.Damper
	looked map[string]glance // by policy
}

// glance is when a policy looked last.
type glance struct {
	version int64
	slot    time.Time
}

// NewWatcher returns a watcher.
func NewWatcher(config WatcherConfig) *Watcher {
	return &Watcher{config: config, damper: alert.NewDamper(), looked: make(map[string]glance)}
}

// Step lets the policies look whose turn it is. What one of them cannot see does not keep the
// others from looking.
func (w *Watcher) Step(ctx context.Context, now time.Time) (AlertReport, error) {
	var report AlertReport
	before := w.config.Alerts.Taken()
	err := w.step(ctx, now, &report)
	report.Taken = w.config.Alerts.Taken() - before
	report.Open = w.config.Alerts.history.Len()
	return report, err
}

func (w *Watcher) step(ctx context.Context, now time.Time, report *AlertReport) error {
	if err := w.config.Alerts.Sync(ctx); err != nil {
		return err
	}
	if err := w.config.Prices.Refresh(ctx, now); err != nil {
		return err
	}
	policies := w.config.Prices.Catalog.Policies(now.Unix())
	history := w.config.Alerts.history
	decided := w.damper.Drop(history, policies, now.Unix())
	looked := make(map[string]glance, len(policies))
	for _, p := range policies {
		if last, ok := w.looked[p.Name]; ok && last.version == p.From {
			looked[p.Name] = last
		}
	}
	due := slices.DeleteFunc(policies, func(p *catalog.Policy) bool {
		last, ok := looked[p.Name]
		return ok && last.slot.Equal(slot(p.Type, now))
	})
	s := &sight{watched: w.config.Watched, catalog: w.config.Prices.Catalog, now: now}
	looks, errs := s.looks(ctx, due)
	for i, p := range due {
		if looks[i] == nil {
			continue
		}
		decided = append(decided, w.damper.Decide(history, p, *looks[i], now.Unix())...)
		looked[p.Name] = glance{p.From, slot(p.Type, now)}
		report.Policies++
	}
	var err error
	if report.Decided, err = w.config.Alerts.Append(ctx, decided); err != nil {
		w.damper = alert.NewDamper() // what it counted may be in the log or not
		return errors.Join(append(errs, err)...)
	}
	w.looked = looked
	return errors.Join(errs...)
}

// slot is the span of time in which a type of policies looks once.
func slot(of catalog.PolicyType, now time.Time) time.Time {
	switch of {
	case catalog.LowUtilisation, catalog.FleetUtilisation:
		return now.Truncate(time.Hour)
	case catalog.SpendAnomaly:
		return now.Add(-spendDelay).Truncate(time.Hour)
	case catalog.PriceChange, catalog.PriceLow:
		return now.Truncate(10 * time.Minute)
	case catalog.IdleGPU, catalog.Unreleased, catalog.ExporterSilent, catalog.DeadLetters,
		catalog.HeldInvoices, catalog.ContractEnd, catalog.AllowanceUsed:
	}
	return now
}

// sight is what the policies of one step see. What several look at is asked for once.
type sight struct {
	watched Watched
	catalog *catalog.Catalog
	now     time.Time

	loads   map[int64][]alert.Load // by minutes
	silence map[int64]silence      // by minutes
	letters *[]alert.Letters
	held    *[]alert.HeldDocument
}

// silence is of which sessions nothing was heard, and when anything was heard last.
type silence struct {
	all    []alert.LastSeen
	newest time.Time
}

// second is that of the newest event; 0: there is none.
func (s *silence) second() int64 {
	if s.newest.IsZero() {
		return 0
	}
	return s.newest.Unix()
}

// looks returns what each policy sees; nil where it cannot look now.
func (s *sight) looks(ctx context.Context, policies []*catalog.Policy) ([]*alert.Look, []error) {
	looks := make([]*alert.Look, len(policies))
	var errs []error
	var spends []*catalog.Policy
	for i, p := range policies {
		if p.Type == catalog.SpendAnomaly {
			spends = append(spends, p)
			continue
		}
		look, err := s.look(ctx, p)
		if err != nil {
			errs = append(errs, fmt.Errorf("policy %s: %w", p.Name, err))
			continue
		}
		looks[i] = look
	}
	found, err := s.spends(ctx, spends)
	if err != nil {
		return looks, append(errs, fmt.Errorf("policies of spend: %w", err))
	}
	for i, p := range policies {
		if p.Type == catalog.SpendAnomaly {
			looks[i], found = &found[0], found[1:]
		}
	}
	return looks, errs
}

// look is what one policy sees; nil where nothing can be seen now.
func (s *sight) look(ctx context.Context, p *catalog.Policy) (*alert.Look, error) {
	now := s.now.Unix()
	switch p.Type {
	case catalog.IdleGPU, catalog.Unreleased:
		return s.load(ctx, p)
	case catalog.LowUtilisation:
		from := s.now.AddDate(0, 0, -int(p.Whole("days")))
		cards, err := s.watched.Cards(ctx, from, s.now)
		return seen(alert.LowUtilisation(p, cards, now), err)
	case catalog.FleetUtilisation:
		from := s.now.Add(-time.Duration(p.Whole("hours")) * time.Hour)
		busy, err := s.watched.BusyBetween(ctx, from, s.now)
		return seen(alert.FleetUtilisation(p, busy, now), err)
	case catalog.ExporterSilent:
		quiet, err := s.silent(ctx, p.Whole("minutes"))
		return seen(alert.ExporterSilent(p, quiet.all, quiet.second(), now), err)
	case catalog.PriceChange:
		return seen(alert.PriceChange(p, s.catalog, now), nil)
	case catalog.PriceLow:
		return seen(alert.PriceLow(p, s.catalog, now), nil)
	case catalog.DeadLetters:
		letters, err := once(&s.letters, func() ([]alert.Letters, error) {
			return s.watched.Letters(ctx, s.now.Add(-time.Duration(alert.LettersWithin)*time.Second))
		})
		return seen(alert.DeadLetters(p, letters, s.catalog, now), err)
	case catalog.HeldInvoices:
		held, err := once(&s.held, func() ([]alert.HeldDocument, error) {
			return s.watched.HeldDocuments(ctx)
		})
		return seen(alert.HeldInvoices(p, held, now), err)
	case catalog.SpendAnomaly, catalog.ContractEnd, catalog.AllowanceUsed:
		// The first is seen by spends. The others join when contracts do: they find nothing yet.
	}
	return nil, nil
}

func seen(look alert.Look, err error) (*alert.Look, error) {
	if err != nil {
		return nil, err
	}
	return &look, nil
}

// once asks for something unless it was asked for.
func once[T any](known **T, ask func() (T, error)) (T, error) {
	if *known == nil {
		got, err := ask()
		if err != nil {
			return got, err
		}
		*known = &got
	}
	return **known, nil
}

// load is what a policy sees of sessions. Nothing is known of those that are silent, and of none
// while nothing arrives at all.
func (s *sight) load(ctx context.Context, p *catalog.Policy) (*alert.Look, error) {
	quiet, err := s.silent(ctx, int64(heard/time.Minute))
	if err != nil || quiet.newest.IsZero() || s.now.Sub(quiet.newest) > heard {
		return nil, err
	}
	span := p.Whole("minutes")
	loads, ok := s.loads[span]
	if !ok {
		if loads, err = s.watched.Loads(ctx, s.now, time.Duration(span)*time.Minute); err != nil {
			return nil, err
		}
		if s.loads == nil {
			s.loads = make(map[int64][]alert.Load)
		}
		s.loads[span] = loads
	}
	var look alert.Look
	if p.Type == catalog.IdleGPU {
		look = alert.IdleGPU(p, loads, s.catalog, s.now.Unix())
	} else {
		look = alert.Unreleased(p, loads, s.now.Unix())
	}
	type thing struct{ tenant, name string }
	silent := make(map[thing]bool)
	for _, l := range quiet.all {
		silent[thing{l.Tenant, l.Session}], silent[thing{l.Tenant, l.Lease}] = true, true
	}
	unsure := look.Unsure
	look.Unsure = func(a *alert.Alert) bool {
		return silent[thing{a.Tenant, a.Subject}] || unsure != nil && unsure(a)
	}
	return &look, nil
}

func (s *sight) silent(ctx context.Context, after int64) (silence, error) {
	if got, ok := s.silence[after]; ok {
		return got, nil
	}
	all, newest, err := s.watched.Silent(ctx, s.now, time.Duration(after)*time.Minute, silentWithin)
	if err != nil {
		return silence{}, err
	}
	if s.silence == nil {
		s.silence = make(map[int64]silence)
	}
	s.silence[after] = silence{all, newest}
	return s.silence[after], nil
}

// spends is what policies see of the last full hour's spend, each one's look in their order.
func (s *sight) spends(ctx context.Context, policies []*catalog.Policy) ([]alert.Look, error) {
	if len(policies) == 0 {
		return nil, nil
	}
	hour := slot(catalog.SpendAnomaly, s.now).Add(-time.Hour)
	spends := alert.NewSpends(hour.Unix(), policies)
	err := s.watched.HourlySpend(ctx, spends.From(), hour.Add(time.Hour).Unix(), spends.Add)
	if err != nil {
		return nil, err
	}
	return spends.Looks(), nil
}
