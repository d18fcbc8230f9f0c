package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/rating"
	"github.com/suanpan/suanpan/schemas"
)

// DefaultGrace is how long after its end a period is closed: by then its usage has come. For past
// usage of a tenant that is new to the log it counts from the tenant's first record.
const DefaultGrace = 48 * time.Hour

// doubtDays is how long dead letters hold the documents of a period back.
const doubtDays = 5

// BillerConfig says how a biller works. Bills, Log, Billing and Prices are required.
type BillerConfig struct {
	Bills   Bills
	Log     Appender // takes closes and decisions
	Billing Tail     // the billing topic
	Prices  *Prices

	Source       string        // of the events that it sends; default "/biller"
	Grace        time.Duration // default [DefaultGrace]; below 0 is none
	LateDays     int           // see billing.DefaultLateDays
	Batch        int           // periods that are drafted together; default 300
	TimeZoneData string        // version, for the proofs
}

// Biller closes the billing periods that are over, decides on their documents, and keeps the
// store's documents as the billing log has them. All that it does follows from the log and the
// store, so a missed tick, a second biller or a restart changes nothing.
type Biller struct {
	config  BillerConfig
	book    *billing.Book
	entries []billing.Entry // that are not written yet
	checked bool            // that the log has all that the store knows
	sent    map[PeriodKey]time.Time
	first   []PeriodKey
	records map[string]time.Time // first ones, by tenant
	firstAt time.Time
}

// ErrLogTooShort is returned where the store has more issued documents than the billing log: the
// log was lost or is another's, and going on would give numbers twice.
var ErrLogTooShort = errors.New("the billing log has fewer documents than the store")

// BillReport says what a step did.
type BillReport struct {
	Closed  int  // closes that were sent
	Decided int  // periods
	Issued  int  // documents that got a number
	Held    int  // documents that wait for a person
	Waiting int  // closed periods that dead letters hold back
	Ignored int  // records of the billing log that must be ignored
	More    bool // there is more to do at once
	Left    int  // closed periods that are not decided on yet
}

// NewBiller returns a biller.
func NewBiller(config BillerConfig) *Biller {
	if config.Source == "" {
		config.Source = "/biller"
	}
	switch {
	case config.Grace == 0:
		config.Grace = DefaultGrace
	case config.Grace < 0:
		config.Grace = 0
	}
	if config.Batch == 0 {
		config.Batch = 300
	}
	return &Biller{config: config, book: billing.NewBook(), sent: make(map[PeriodKey]time.Time)}
}

// Step does some work. It must be called again soon where the report says that there is more.
func (b *Biller) Step(ctx context.Context, now time.Time) (BillReport, error) {
	var report BillReport
	if err := b.sync(ctx, &report); err != nil {
		return report, err
	}
	list, err := b.config.Bills.Closes(ctx, nil)
	if err != nil {
		return report, fmt.Errorf("read closes: %w", err)
	}
	// The catalog is read after the closes: it has all that their rows were rated by.
	if err := b.config.Prices.Refresh(ctx, now); err != nil {
		return report, err
	}
	closes := make(rating.Closes, len(list))
	for i := range list {
		closes.Add(&list[i])
	}
	if err := b.close(ctx, closes, now, &report); err != nil {
		return report, err
	}
	if err := b.decide(ctx, closes, now, &report); err != nil {
		return report, err
	}
	return report, b.sync(ctx, &report)
}

// sync brings the book, and the store's documents, up to the end of the billing log.
func (b *Biller) sync(ctx context.Context, report *BillReport) error {
	var issued, written int64
	if !b.checked {
		// Before the log is read: another biller may write meanwhile what that has by then.
		var err error
		if issued, err = b.config.Bills.Issued(ctx); err != nil {
			return fmt.Errorf("count issued documents: %w", err)
		}
		if written, err = b.config.Bills.Written(ctx); err != nil {
			return fmt.Errorf("find the newest document: %w", err)
		}
	}
	records, err := b.config.Billing.ReadToEnd(ctx)
	if err != nil {
		return fmt.Errorf("read billing log: %w", err)
	}
	for _, r := range records {
		entries, err := b.book.Apply(r.Offset, r.Time, r.Value)
		if err != nil {
			report.Ignored++
			continue
		}
		b.entries = append(b.entries, entries...)
	}
	if !b.checked {
		if issued > b.book.Issued() {
			return fmt.Errorf("%w: %d, not %d", ErrLogTooShort, b.book.Issued(), issued)
		}
		b.entries = slices.DeleteFunc(b.entries, func(e billing.Entry) bool {
			return e.Offset <= written // another biller wrote it, or this one before it restarted
		})
		b.checked = true
	}
	if len(b.entries) == 0 {
		return nil
	}
	if err := b.config.Bills.WriteDocuments(ctx, b.entries); err != nil {
		return fmt.Errorf("write %d documents: %w", len(b.entries), err)
	}
	for i := range b.entries {
		switch b.entries[i].Status {
		case billing.Issued:
			report.Issued++
		case billing.Held:
			report.Held++
		case billing.Voided:
		}
	}
	b.entries = nil
	return nil
}

// resend is after which time a close is sent again that was not recorded.
const resend = 5 * time.Minute

// close sends the closes of periods that are over.
func (b *Biller) close(ctx context.Context, closes rating.Closes, now time.Time,
	report *BillReport,
) error {
	due, err := b.due(ctx, closes, now)
	if err != nil {
		return err
	}
	var records []Record
	for _, one := range due {
		if at, ok := b.sent[one.PeriodKey]; ok && now.Sub(at) < resend && !now.Before(at) {
			continue
		}
		record, err := CloseRecord(&one, b.config.Source)
		if err != nil {
			return err
		}
		records = append(records, record)
		b.sent[one.PeriodKey] = now
	}
	for key := range b.sent {
		if _, ok := closes[key]; ok {
			delete(b.sent, key)
		}
	}
	if len(records) == 0 {
		return nil
	}
	report.Closed += len(records)
	if err := b.config.Log.Append(ctx, records...); err != nil {
		clear(b.sent) // any part of them may have been appended; the first close counts
		return fmt.Errorf("send %d closes: %w", len(records), err)
	}
	return nil
}

// firstEvery is how often the first periods of contracts are looked up.
const firstEvery = 10 * time.Minute

// due returns the closes that are missing: of every contract all periods from the first one with
// usage on, or from its beginning where empty invoices are wanted, that ended the grace ago.
func (b *Biller) due(ctx context.Context, closes rating.Closes, now time.Time,
) ([]rating.Close, error) {
	if b.firstAt.IsZero() || now.Sub(b.firstAt) >= firstEvery || now.Before(b.firstAt) {
		first, err := b.config.Bills.FirstPeriods(ctx)
		if err != nil {
			return nil, fmt.Errorf("find the first periods of contracts: %w", err)
		}
		records, err := b.config.Bills.FirstRecords(ctx)
		if err != nil {
			return nil, fmt.Errorf("find the first records of tenants: %w", err)
		}
		b.first, b.records, b.firstAt = first, records, now
	}
	starts := make(map[PeriodKey]string)
	for _, k := range b.first {
		starts[PeriodKey{Tenant: k.Tenant, Contract: k.Contract}] = k.Period
	}
	b.addEmpty(starts, now)
	until := now.Add(-b.config.Grace).Unix()
	var due []rating.Close
	for _, k := range sortedPeriods(starts) {
		if b.records[k.Tenant].Unix() > until && !b.records[k.Tenant].IsZero() {
			continue // its past is still being loaded
		}
		for period := starts[k]; ; period = rating.NextPeriod(period) {
			from, end, ok := b.config.Prices.Catalog.PeriodBounds(k.Tenant, k.Contract, period)
			if !ok || end > until {
				break
			}
			one := rating.Close{
				PeriodKey: PeriodKey{Tenant: k.Tenant, Contract: k.Contract, Period: period},
				From:      from, Until: end,
				CatalogOffset: b.config.Prices.CatalogEnd, MarketOffset: b.config.Prices.MarketEnd,
			}
			if _, closed := closes[one.PeriodKey]; !closed {
				due = append(due, one)
			}
		}
	}
	return due, nil
}

// addEmpty adds contracts whose seller wants invoices of empty periods: from the first full period.
func (b *Biller) addEmpty(starts map[PeriodKey]string, now time.Time) {
	c := b.config.Prices.Catalog
	for _, tenant := range c.Tenants() {
		for _, binding := range c.Bindings(tenant) {
			key := PeriodKey{Tenant: tenant, Contract: binding.Contract}
			seller, err := c.SellerOf(tenant, binding.Contract, now.Unix())
			if err != nil || !seller.EmptyInvoices || binding.Location == nil ||
				binding.From < earliestBinding {
				continue
			}
			period := time.Unix(binding.From, 0).In(binding.Location).Format("2006-01")
			if first, ok := starts[key]; !ok || period < first {
				starts[key] = period
			}
		}
	}
}

// earliestBinding keeps tenants that are there "always" from empty invoices since 1970.
const earliestBinding = 946_684_800 // 2000-01-01

func sortedPeriods(starts map[PeriodKey]string) []PeriodKey {
	keys := make([]PeriodKey, 0, len(starts))
	for k := range starts {
		keys = append(keys, k)
	}
	sortPeriods(keys)
	return keys
}

// CloseRecord is the event that closes a period.
func CloseRecord(c *rating.Close, source string) (Record, error) {
	value, err := closeEvent(c, source)
	if err != nil {
		return Record{}, fmt.Errorf("encode close of %s of tenant %s: %w", c.Period, c.Tenant, err)
	}
	return Record{Topic: schemas.TopicUsage, Key: []byte(c.Tenant), Value: value}, nil
}

// Sync reads the billing log to its end, and brings the store's documents up to it.
func (b *Biller) Sync(ctx context.Context) error { return b.sync(ctx, new(BillReport)) }

// Status returns the status of a document, as of the last step or sync; false if there is none.
func (b *Biller) Status(id string) (billing.Status, bool) { return b.book.Status(id) }

// CloseNow sends the closes of a period without waiting for the grace: of one tenant, or of all for
// "". It returns the periods that are not decided on: those, and earlier ones that are closed
// before it. It fails where the period is not over.
func (b *Biller) CloseNow(ctx context.Context, period, tenant string, now time.Time,
) ([]PeriodKey, error) {
	list, err := b.config.Bills.Closes(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("read closes: %w", err)
	}
	closes := make(rating.Closes, len(list))
	for i := range list {
		closes.Add(&list[i])
	}
	if err := b.config.Prices.Refresh(ctx, now); err != nil {
		return nil, err
	}
	// Periods end at different instants in different zones: the last one counts for all.
	due, err := b.due(ctx, closes, now)
	if err != nil {
		return nil, err
	}
	var keys []PeriodKey
	var records []Record
	over := false
	for _, one := range due {
		if tenant != "" && one.Tenant != tenant || one.Period > period {
			continue
		}
		over = over || one.Period == period
		record, err := CloseRecord(&one, b.config.Source)
		if err != nil {
			return nil, err
		}
		keys, records = append(keys, one.PeriodKey), append(records, record)
	}
	for key := range closes {
		if (tenant == "" || key.Tenant == tenant) && key.Period <= period && !b.book.Decided(key) {
			keys = append(keys, key)
		}
		over = over || key.Period == period && (tenant == "" || key.Tenant == tenant)
	}
	if !over && len(keys) == 0 {
		return nil, nil
	}
	if len(records) > 0 {
		if err := b.config.Log.Append(ctx, records...); err != nil {
			return nil, fmt.Errorf("send %d closes: %w", len(records), err)
		}
	}
	sortPeriods(keys)
	return keys, nil
}

// DecideOn decides on closed periods, and returns how many of those asked for are left: the rater
// has not recorded their close, or dead letters hold them back.
func (b *Biller) DecideOn(ctx context.Context, keys []PeriodKey, now time.Time) (int, error) {
	for {
		report := BillReport{}
		list, err := b.config.Bills.Closes(ctx, nil)
		if err != nil {
			return 0, fmt.Errorf("read closes: %w", err)
		}
		closes := make(rating.Closes, len(list))
		for i := range list {
			closes.Add(&list[i])
		}
		if err := b.config.Prices.Refresh(ctx, now); err != nil {
			return 0, err
		}
		if err := b.decide(ctx, closes, now, &report); err != nil {
			return 0, err
		}
		if err := b.Sync(ctx); err != nil {
			return 0, err
		}
		left := 0
		for _, k := range keys {
			if !b.book.Decided(k) {
				left++
			}
		}
		if left == 0 || !report.More {
			return left, nil
		}
	}
}
