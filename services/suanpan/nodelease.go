package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
	"github.com/suanpan/suanpan/pkg/rating"
)

// nodeLease is a lease as the exporter of a node tells it: a member of "leases" in its answer to
// GET /v1/leases. Unknown members are ignored.
type nodeLease struct {
	Lease    string            `json:"lease"`
	Tenant   string            `json:"tenant"`
	Project  string            `json:"project"`
	Session  string            `json:"session"`
	SKU      string            `json:"sku"`
	Held     map[string]string `json:"held"` // default: one of SKU for each device
	Devices  []string          `json:"devices"`
	Since    time.Time         `json:"since"` // start of the session
	Purchase string            `json:"purchase"`
	Region   string            `json:"region"`
	Resumed  bool              `json:"resumed"`
}

// leaseReader asks an exporter for its leases.
type leaseReader struct {
	url    string
	client http.Client
}

const (
	leaseTimeout = 3 * time.Second // an exporter is on this node
	leaseMost    = 4 << 20         // bytes of an answer
)

// read returns the leases, which are not nil, or nil and why they are not known.
func (r *leaseReader) read(ctx context.Context) ([]nodeLease, error) {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	target, err := url.JoinPath(r.url, "v1", "leases")
	if err != nil {
		return nil, fmt.Errorf("ask the exporter for leases: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, fmt.Errorf("ask the exporter for leases: %w", err)
	}
	response, err := r.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the exporter for leases: %w (is it running? --exporter says "+
			"where)", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask the exporter for leases: %s", response.Status)
	}
	var answer struct {
		Leases []nodeLease `json:"leases"`
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, leaseMost)).Decode(&answer); err != nil {
		return nil, fmt.Errorf("read the exporter's leases: %w", err)
	}
	if answer.Leases == nil {
		answer.Leases = []nodeLease{}
	}
	return answer.Leases, nil
}

// leaseCosts prices leases, each as if it were alone.
type leaseCosts struct {
	prices  *catalog.Catalog // nil: nothing has a price
	kept    map[string]leaseCost
	problem error // the last one, for a person to see
}

// leaseCost is what a session costs.
type leaseCost struct {
	at          time.Time // when that was
	hour, total string
}

const (
	costEvery = 20 * time.Second     // how often a session's cost is calculated anew
	dayMost   = 24 * time.Hour       // longest window of an event
	costMost  = 400 * 24 * time.Hour // longest session that is priced
	keptMost  = 1000                 // costs that are kept: more than a node has sessions
)

// of returns what a session costs in the hour from now, and since its start: "-" where it has no
// price.
func (c *leaseCosts) of(l *nodeLease, now time.Time) (hour, total string) {
	if c.prices == nil {
		return "-", "-"
	}
	if cost, ok := c.kept[l.Session]; ok && now.Sub(cost.at) < costEvery {
		return cost.hour, cost.total
	}
	alone := *l
	alone.Since, alone.Resumed = now, true // no minimum: that was paid at its start
	cost := leaseCost{now, c.price(&alone, now.Add(time.Hour)), c.price(l, now)}
	if c.kept == nil || len(c.kept) > keptMost {
		c.kept = map[string]leaseCost{}
	}
	c.kept[l.Session] = cost
	return cost.hour, cost.total
}

// price is what a session costs from its start until an instant.
func (c *leaseCosts) price(l *nodeLease, until time.Time) string {
	if until.Sub(l.Since) > costMost || !until.After(l.Since) {
		return "-"
	}
	offline := rating.NewOffline(c.prices)
	parser := metering.NewParser()
	for from := l.Since; from.Before(until); from = from.Add(dayMost) {
		end := from.Add(dayMost)
		if end.After(until) {
			end = until
		}
		var e metering.Event
		why := parser.Parse(l.event(from, end), &e)
		if why == nil {
			why = offline.Rate(&e)
		}
		if why != nil {
			c.problem = fmt.Errorf("price lease %s: %w", l.Lease, why)
			return "-"
		}
	}
	settled, err := rating.Settle(offline.Ledger().Sums(), c.prices)
	if err != nil {
		c.problem = fmt.Errorf("price lease %s: %w", l.Lease, err)
		return "-"
	}
	var sum money.Amount
	currency := ""
	for i := range settled {
		if currency != "" && currency != settled[i].Currency {
			c.problem = errors.New("price lease " + l.Lease + ": in several currencies")
			return "-"
		}
		sum, currency = sum.Add(settled[i].Amount), settled[i].Currency
	}
	return strings.TrimSpace(sum.Round(2, money.HalfUp).Fixed(2) + " " + currency)
}

// event is the lease's usage in a window, as the exporter would report it.
func (l *nodeLease) event(from, end time.Time) []byte {
	held := l.Held
	if len(held) == 0 {
		held = map[string]string{l.SKU: fmt.Sprint(len(l.Devices))}
	}
	text := func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
	data := map[string]any{
		"tenant": l.Tenant, "project": l.Project, "lease": l.Lease, "session": l.Session,
		"session_start": text(l.Since), "purchase": "on_demand", "start": text(from),
		"end": text(end), "held": held, "resumed": l.Resumed, "region": l.Region,
	}
	if l.Purchase != "" {
		data["purchase"] = l.Purchase
	}
	if l.Region == "" {
		delete(data, "region")
	}
	event, err := json.Marshal(map[string]any{
		"specversion": "1.0", "type": "suanpan.usage.held.v1", "source": "/gpu", "id": text(from),
		"data": data,
	})
	if err != nil {
		panic("BUG: texts do not marshal: " + err.Error())
	}
	return event
}
