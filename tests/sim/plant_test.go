package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"time"

	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/pkg/rating"
	"github.com/suanpan/suanpan/schemas"
)

// monthBugs are those that only a world can have that closes periods.
var monthBugs = map[string]string{
	"close at end":      "a close counts where it was written, not where it is in the log",
	"forget closes":     "a new generation does not know the closes that the store has",
	"close before rows": "a close is recorded before the rows that it closes",
	"close late":        "what is rated after a close is written before the close is recorded",
	"draft early":       "periods are drafted when their close is in the log, before it is recorded",
	"second decision":   "of two decisions on a period the second counts",
	"wall clock":        "documents are dated by the biller's clock, not by the log",
	"stale decision":    "a decision counts that does not know what a person did before it",
	"recount":           "a biller that restarts takes its last documents for written",
}

func init() {
	for bug, what := range monthBugs {
		bugs[bug] = what
	}
}

// plantClose plants bugs of how a rater records closes.
func (b *buggyRows) plantClose(ctx context.Context, c *rating.Changes) (done bool, err error) {
	if len(c.Closes) == 0 {
		return false, nil
	}
	closes := &rating.Changes{Closes: c.Closes}
	rest := *c
	rest.Closes = nil
	switch b.bug {
	case "close before rows":
		if err := b.Rows.Write(ctx, closes); err != nil {
			return true, err
		}
		return true, b.Rows.Write(ctx, &rest)
	case "close at end":
		moved := *c
		moved.Closes = slices.Clone(c.Closes)
		for i := range moved.Closes {
			one := &moved.Closes[i]
			one.Offset = int64(len(b.n.w.log.usage[one.Partition]))
		}
		return true, b.Rows.Write(ctx, &moved)
	case "close late":
		b.n.w.at(b.n.w.now.Add(20*time.Second), func() {
			for i := range closes.Closes {
				b.n.w.store.putClose(closes.Closes[i])
			}
		})
		return true, b.Rows.Write(ctx, &rest)
	}
	return false, nil
}

func (b *buggyRows) Closes(ctx context.Context, partitions []int) ([]rating.Close, error) {
	if b.bug == "forget closes" {
		return nil, nil
	}
	return b.Rows.Closes(ctx, partitions)
}

// buggyBills plants bugs of a biller between it and its store.
type buggyBills struct {
	pipeline.Bills
	bug string
	n   *node
}

func plantBills(bug string, b pipeline.Bills, n *node) pipeline.Bills {
	return &buggyBills{b, bug, n}
}

func (b *buggyBills) Closes(ctx context.Context, partitions []int) ([]rating.Close, error) {
	closes, err := b.Bills.Closes(ctx, partitions)
	if b.bug != "draft early" || err != nil {
		return closes, err
	}
	for p, records := range b.n.w.log.usage {
		for _, r := range records {
			if b.n.w.fleet.intents[string(r.Value)].kind != "close" {
				continue
			}
			var e struct {
				Data struct {
					Tenant, Contract string
					From, Until      time.Time
				} `json:"data"`
			}
			if err := json.Unmarshal(r.Value, &e); err != nil {
				return nil, err
			}
			key := period{
				Tenant: e.Data.Tenant, Contract: e.Data.Contract,
				Period: e.Data.From.Add(36 * time.Hour).UTC().Format("2006-01"),
			}
			if !slices.ContainsFunc(closes, func(c rating.Close) bool { return c.PeriodKey == key }) {
				closes = append(closes, rating.Close{
					PeriodKey: key, From: e.Data.From.Unix(), Until: e.Data.Until.Unix(),
					At: r.Time.Unix(), Position: rating.Position{Partition: p, Offset: r.Offset},
				})
			}
		}
	}
	return closes, nil
}

func (b *buggyBills) Written(ctx context.Context) (int64, error) {
	last, err := b.Bills.Written(ctx)
	if b.bug == "recount" {
		last = int64(len(b.n.w.log.billing))
	}
	return last, err
}

// knownOf is what a decision says of the log that its sender had read.
var knownOf = regexp.MustCompile(`,"known":\d+`)

// buggyTail plants bugs of how a biller reads the billing log.
type buggyTail struct {
	pipeline.Tail
	bug string
	n   *node
}

func plantTail(bug string, t pipeline.Tail, n *node) pipeline.Tail { return &buggyTail{t, bug, n} }

func (t *buggyTail) ReadToEnd(ctx context.Context) ([]pipeline.Record, error) {
	records, err := t.Tail.ReadToEnd(ctx)
	switch t.bug {
	case "wall clock":
		for i := range records {
			records[i].Time = t.n.w.now.Add(t.n.skew)
		}
	case "stale decision":
		for i := range records {
			records[i].Value = knownOf.ReplaceAll(records[i].Value, nil)
		}
	case "second decision":
		var kept []pipeline.Record
		for i, r := range records {
			if r.Topic != schemas.TopicBilling || !slices.ContainsFunc(records[i+1:],
				func(later pipeline.Record) bool { return bytes.Equal(later.Value, r.Value) }) {
				kept = append(kept, r)
			}
		}
		records = kept
	}
	return records, err
}
