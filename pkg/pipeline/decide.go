package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/rating"
	"github.com/suanpan/suanpan/schemas"
)

func sortPeriods(keys []PeriodKey) {
	slices.SortFunc(keys, func(a, b PeriodKey) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Period, b.Period),
			cmp.Compare(a.Contract, b.Contract))
	})
}

func closeEvent(c *rating.Close, source string) ([]byte, error) {
	data := struct {
		Tenant        string `json:"tenant"`
		Contract      string `json:"contract,omitempty"`
		From          string `json:"from"`
		Until         string `json:"until"`
		CatalogOffset int64  `json:"catalog_offset"`
		MarketOffset  int64  `json:"market_offset"`
	}{
		c.Tenant, c.Contract, metering.InstantOf(c.From).String(), metering.InstantOf(c.Until).String(),
		c.CatalogOffset, c.MarketOffset,
	}
	return json.Marshal(map[string]any{
		"specversion": "1.0", "type": schemas.TypePeriodClose, "source": source,
		"id":   "close," + c.Tenant + "," + c.Contract + "," + c.Period,
		"data": data,
	})
}

// decide drafts the documents of closed periods and appends the decisions to the billing log: of
// each tenant the earliest period that is left, with all its contracts, as what is billed later
// depends on what was billed before.
func (b *Biller) decide(ctx context.Context, closes rating.Closes, now time.Time,
	report *BillReport,
) error {
	next := make(map[string]string) // by tenant
	for k := range closes {
		if b.book.Decided(k) {
			continue
		}
		report.Left++
		if p, ok := next[k.Tenant]; !ok || k.Period < p {
			next[k.Tenant] = k.Period
		}
	}
	var keys []PeriodKey
	for k := range closes {
		if !b.book.Decided(k) && next[k.Tenant] == k.Period {
			keys = append(keys, k)
		}
	}
	sortPeriods(keys)
	for len(keys) > 0 {
		n := min(len(keys), b.config.Batch)
		decided, err := b.decideBatch(ctx, keys[:n], closes, now, report)
		if err != nil {
			return err
		}
		if decided > 0 {
			report.More = report.Left > report.Decided+report.Waiting
			return nil // what is next may depend on it
		}
		keys = keys[n:] // all of these wait
	}
	return nil
}

// decideBatch decides on periods and returns how many it decided on.
func (b *Biller) decideBatch(ctx context.Context, keys []PeriodKey, closes rating.Closes,
	now time.Time, report *BillReport,
) (int, error) {
	bounds := make(map[PeriodKey][2]int64, len(keys))
	for _, k := range keys {
		bounds[k] = [2]int64{closes[k].From, closes[k].Until}
	}
	doubts, err := b.config.Bills.Doubts(ctx, keys, bounds)
	if err != nil {
		return 0, fmt.Errorf("look for doubts: %w", err)
	}
	ready := make([]PeriodKey, 0, len(keys))
	waiting := make(map[string]bool) // tenants
	for _, k := range keys {
		end := time.Unix(closes[k].Until, 0).Add(b.config.Grace).AddDate(0, 0, doubtDays)
		if doubts[k].DeadLetters > 0 && now.Before(end) {
			report.Waiting++
			waiting[k.Tenant] = true
		}
	}
	for _, k := range keys {
		if !waiting[k.Tenant] {
			ready = append(ready, k)
		}
	}
	if len(ready) == 0 {
		return 0, nil
	}
	closings, err := b.closings(ctx, ready, closes)
	if err != nil {
		return 0, err
	}
	records := make([]Record, 0, len(ready))
	for _, c := range closings {
		drafts, err := billing.Draft(c)
		if err != nil {
			return 0, fmt.Errorf("draft %s of tenant %s: %w", c.Period, c.Tenant, err)
		}
		key := PeriodKey{Tenant: c.Tenant, Contract: c.Contract, Period: c.Period}
		decision := &billing.Decision{
			Tenant: c.Tenant, Contract: c.Contract, Period: c.Period,
			Documents: billing.Decide(c, drafts, doubts[key].Overlaps), Known: b.book.End(),
		}
		if n := doubts[key].DeadLetters; n > 0 {
			note := fmt.Sprintf("%d usage events of the period could not be rated.", n)
			for i := range decision.Documents {
				doc := &decision.Documents[i].Document
				doc.Notes = append(doc.Notes, note)
			}
		}
		value, err := (&billing.Record{Decision: decision}).Encode(b.config.Source)
		if err != nil {
			return 0, err
		}
		records = append(records, Record{
			Topic: schemas.TopicBilling, Key: []byte(c.Tenant), Value: value,
		})
	}
	if err := b.config.Log.Append(ctx, records...); err != nil {
		return 0, fmt.Errorf("append %d decisions: %w", len(records), err)
	}
	report.Decided += len(records)
	return len(records), nil
}

// closings gathers what the documents of closed periods follow from. Those of one tenant share its
// history and must be drafted in the order in which they are returned.
func (b *Biller) closings(ctx context.Context, keys []PeriodKey, closes rating.Closes,
) ([]*billing.Closing, error) {
	uses, err := b.config.Bills.Uses(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("sum usage: %w", err)
	}
	histories := make(map[string]*billing.History)
	var tenants []string
	for _, k := range keys {
		if histories[k.Tenant] == nil {
			histories[k.Tenant] = billing.NewHistory()
			tenants = append(tenants, k.Tenant)
		}
	}
	err = b.config.Bills.Documents(ctx, tenants, func(d *billing.Document) error {
		return histories[d.Tenant].Add(d)
	})
	if err != nil {
		return nil, fmt.Errorf("read earlier documents: %w", err)
	}
	proofs, err := b.proofs(ctx, keys, closes)
	if err != nil {
		return nil, err
	}
	out := make([]*billing.Closing, 0, len(keys))
	for _, k := range keys {
		out = append(out, &billing.Closing{
			Tenant: k.Tenant, Contract: k.Contract, Period: k.Period,
			Uses: uses[k], Proofs: proofs[k], Catalog: b.config.Prices.Catalog,
			History: histories[k.Tenant], AsOf: closes[k].At, LateDays: b.config.LateDays,
		})
	}
	return out, nil
}

// proofs hashes the rows of periods, by currency.
func (b *Biller) proofs(ctx context.Context, keys []PeriodKey, closes rating.Closes,
) (map[PeriodKey]map[string]billing.Proof, error) {
	hashes := make(map[PeriodKey]map[string]*rating.RowHash, len(keys))
	err := b.config.Bills.RowLines(ctx, keys, func(of PeriodKey, line rating.RowLine) error {
		version, ok := b.config.Prices.Catalog.BookVersion(line.Charge.Book, line.Charge.BookVersion)
		if !ok {
			return fmt.Errorf("price book %s has no version that starts at %d", line.Charge.Book,
				line.Charge.BookVersion)
		}
		if hashes[of] == nil {
			hashes[of] = make(map[string]*rating.RowHash)
		}
		if hashes[of][version.Currency] == nil {
			hashes[of][version.Currency] = new(rating.RowHash)
		}
		hashes[of][version.Currency].Add(line.Text)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("hash rows: %w", err)
	}
	proofs := make(map[PeriodKey]map[string]billing.Proof, len(keys))
	for _, k := range keys {
		proofs[k] = make(map[string]billing.Proof)
		one := closes[k]
		for currency, hash := range hashes[k] {
			proofs[k][currency] = billing.Proof{
				Rows: hash.Rows, RowsSHA256: hash.Sum(), TimeZoneData: b.config.TimeZoneData,
				Partition: one.Partition, CloseOffset: one.Offset,
				CatalogOffset: one.CatalogOffset, MarketOffset: one.MarketOffset,
			}
		}
	}
	return proofs, nil
}

// Preview drafts the documents of a period as if it were closed now; "" is the one that now lies
// in. It decides on nothing.
func (b *Biller) Preview(ctx context.Context, tenant, contract, period string, now time.Time,
) ([]*billing.Document, error) {
	c := b.config.Prices.Catalog
	if !c.HasTenant(tenant) {
		return nil, fmt.Errorf("preview invoice: the catalog has no tenant %q", tenant)
	}
	if period == "" {
		if period = c.PeriodAt(tenant, contract, now.Unix()); period == "" {
			return nil, fmt.Errorf("preview invoice: contract %q of tenant %s has no price book now",
				contract, tenant)
		}
	}
	key := PeriodKey{Tenant: tenant, Contract: contract, Period: period}
	from, until, ok := c.PeriodBounds(tenant, contract, period)
	if !ok {
		return nil, fmt.Errorf("preview invoice: contract %q of tenant %s has no price book in %q",
			contract, tenant, period)
	}
	closes := rating.Closes{key: {PeriodKey: key, From: from, Until: until, At: now.Unix()}}
	closings, err := b.closings(ctx, []PeriodKey{key}, closes)
	if err != nil {
		return nil, err
	}
	drafts, err := billing.Draft(closings[0])
	if err != nil {
		return nil, fmt.Errorf("preview invoice: %w", err)
	}
	for _, d := range drafts {
		d.Proof = billing.Proof{} // nothing is closed yet
	}
	return drafts, nil
}

// Redraft makes a draft that has no seller again, with the one that there is by now and what
// follows from it. It fails where there still is none.
func (b *Biller) Redraft(ctx context.Context, d *billing.Document, now time.Time,
) (*billing.Document, billing.Terms, error) {
	c := b.config.Prices.Catalog
	seller, err := c.SellerOf(d.Tenant, d.Contract, now.Unix())
	if err != nil {
		return nil, billing.Terms{}, err
	}
	period, err := d.DecidedAt()
	if err != nil {
		return nil, billing.Terms{}, err
	}
	key := PeriodKey{Tenant: d.Tenant, Contract: d.Contract, Period: period}
	list, err := b.config.Bills.Closes(ctx, nil)
	if err != nil {
		return nil, billing.Terms{}, fmt.Errorf("read closes: %w", err)
	}
	closes := make(rating.Closes)
	for i := range list {
		if list[i].PeriodKey == key {
			list[i].At = now.Unix() // the parties are as of issue
			closes.Add(&list[i])
		}
	}
	closings, err := b.closings(ctx, []PeriodKey{key}, closes)
	if err != nil {
		return nil, billing.Terms{}, err
	}
	closing := closings[0]
	closing.History = billing.NewHistory()
	before := true // of what was decided on before the draft
	err = b.config.Bills.Documents(ctx, []string{d.Tenant}, func(other *billing.Document) error {
		if at, err := other.DecidedAt(); err == nil && at == period && other.Contract == d.Contract {
			before = false
		}
		if !before {
			return nil
		}
		return closing.History.Add(other)
	})
	if err != nil {
		return nil, billing.Terms{}, fmt.Errorf("read earlier documents: %w", err)
	}
	drafts, err := billing.Draft(closing)
	if err != nil {
		return nil, billing.Terms{}, fmt.Errorf("draft %s again: %w", d.ID(), err)
	}
	for _, draft := range drafts {
		if draft.ID() == d.ID() {
			return draft, billing.TermsOf(seller, d.Type), nil
		}
	}
	return nil, billing.Terms{}, fmt.Errorf("draft %s again: there is nothing to bill", d.ID())
}
