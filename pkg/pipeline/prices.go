package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
)

// Headers of catalog and market records.
const (
	HeaderBatch  = "suanpan-apply"  // names the apply that a document was part of
	HeaderReplay = "suanpan-replay" // not empty: loaded before any usage, may start in the past
)

// settleDelay is how long after the end of a window its prices are read: by then the log has all
// that may change them.
const settleDelay = 5 * time.Second

// Ignored is a record of the catalog or market topic that no reader takes in.
type Ignored struct {
	Record
	Why        string
	Reason     metering.Reason // of a market price that is a dead letter; "" otherwise
	Source, ID string          // of a market price, as far as it could be read
}

// Prices is the catalog as the log has it. It belongs to one loop.
type Prices struct {
	Catalog *catalog.Catalog
	Ignored []Ignored // in the order of the log

	// CatalogEnd and MarketEnd are the offsets after the last records that were read.
	CatalogEnd, MarketEnd int64

	entries []catalog.Entry            // all documents, in the order of the log
	offsets []int64                    // of these
	amended map[int64]*catalog.Catalog // by the offset up to which it was read

	documents Tail
	market    Tail
	parser    *metering.Parser
	readAt    time.Time
}

// NewPrices returns a catalog that Refresh fills from the two topics.
func NewPrices(documents, market Tail) *Prices {
	return &Prices{
		Catalog: catalog.Empty(), documents: documents, market: market,
		parser: metering.NewParser(), amended: make(map[int64]*catalog.Catalog),
	}
}

// Amended returns the catalog as it was up to an offset, with all versions that start in the past:
// what a re-rating prices by. It is nil where the catalog was not read that far. Market prices are
// those of all readers.
func (p *Prices) Amended(offset int64) *catalog.Catalog {
	if offset > p.CatalogEnd {
		return nil
	}
	c := p.amended[offset]
	if c != nil {
		return c
	}
	c = p.Catalog.Amended()
	for i, e := range p.entries {
		if p.offsets[i] >= offset {
			break
		}
		e.Replay = true
		_ = c.AddEntry(e) // what contradicts an earlier version counts nowhere
	}
	p.amended[offset] = c
	return c
}

// Refresh reads both topics to their ends.
func (p *Prices) Refresh(ctx context.Context, now time.Time) error {
	records, err := p.documents.ReadToEnd(ctx)
	if err != nil {
		return fmt.Errorf("read catalog: %w", err)
	}
	for _, r := range records {
		p.document(r)
		p.CatalogEnd = r.Offset + 1
	}
	records, err = p.market.ReadToEnd(ctx)
	if err != nil {
		return fmt.Errorf("read market: %w", err)
	}
	for _, r := range records {
		p.price(r)
		p.MarketEnd = r.Offset + 1
	}
	p.readAt = now
	return nil
}

// Settled reports whether all that may price the seconds before an instant was read.
func (p *Prices) Settled(end metering.Instant) bool {
	return !p.readAt.IsZero() && metering.Instant(p.readAt.Add(-settleDelay).UnixNano()) >= end
}

func (p *Prices) document(r Record) {
	at := fmt.Sprintf("%s/%d", r.Topic, r.Offset)
	docs, err := catalog.Parse(at, r.Value)
	if err == nil && len(docs) != 1 {
		err = fmt.Errorf("%s: a record has one document, not %d", at, len(docs))
	}
	if err == nil {
		entry := catalog.Entry{
			Document: docs[0], Appended: r.Time.Unix(), Batch: header(r, HeaderBatch),
			Replay: header(r, HeaderReplay) != "",
		}
		p.entries, p.offsets = append(p.entries, entry), append(p.offsets, r.Offset)
		err = p.Catalog.AddEntry(entry)
	}
	if err != nil {
		p.Ignored = append(p.Ignored, Ignored{Record: r, Why: err.Error()})
	}
}

func (p *Prices) price(r Record) {
	var e metering.Event
	rejection := p.parser.Parse(r.Value, &e)
	if rejection == nil {
		rejection = e.Problem()
	}
	if rejection == nil && e.Kind != metering.MarketPrice {
		rejection = metering.Reject(metering.Misrouted, "only market prices go to this topic")
	}
	ignored := Ignored{Record: r, Source: e.Source, ID: e.ID}
	if rejection == nil {
		if header(r, HeaderReplay) == "" && e.At < metering.Instant(r.Time.UnixNano()) {
			ignored.Why = fmt.Sprintf("it holds from %s, but was published at %s", e.At,
				r.Time.UTC().Format(time.RFC3339Nano))
			p.Ignored = append(p.Ignored, ignored)
			return
		}
		rejection = p.Catalog.AddMarket(&e)
	}
	if rejection != nil {
		ignored.Why, ignored.Reason = rejection.Detail, rejection.Reason
		p.Ignored = append(p.Ignored, ignored)
	}
}

func header(r Record, key string) string {
	for _, h := range r.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}

// ignored makes dead letters of market prices that no reader takes in.
func (r *Rater) ignored(now time.Time, report *RateReport) {
	s := r.state
	for _, i := range r.config.Prices.Ignored[s.seen:] {
		report.Ignored++
		if i.Reason != "" {
			report.Rejected[i.Reason]++
			s.letters = append(s.letters, DeadLetter{
				Record: i.Record, Reason: string(i.Reason), Detail: i.Why,
				Source: i.Source, ID: i.ID, SeenAt: now,
			})
			if s.dirtySince.IsZero() {
				s.dirtySince = now
			}
		}
	}
	s.seen = len(r.config.Prices.Ignored)
}
