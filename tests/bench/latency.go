package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/suanpan/suanpan/pkg/kafka"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/schemas"
)

// How long an alert takes: thresholds are crossed at offsets that are spread over a minute, so that
// they meet ticks and flushes at any moment of theirs.
const (
	latencyCrossings = 10
	latencyBetween   = time.Minute / latencyCrossings
	latencyMost      = 20 * time.Second // beside a tick: rating waits 5 s, a flush up to 10
	latencyLimit     = 4 * time.Minute
)

// latency is how long crossings took to be told, in seconds.
type latency struct {
	Tick   float64   `json:"tick_seconds"`
	Most   float64   `json:"most_seconds"` // what they may take
	Took   []float64 `json:"seconds"`      // ascending
	Median float64   `json:"median_seconds"`
}

// alertLatency measures from the event that crosses a budget's threshold to the receipt of the
// webhook, with everything as `serve` runs it: once by the clock as it is set, once by a fast one.
func (b *bench) alertLatency(ctx context.Context) error {
	if err := b.setup(ctx); err != nil {
		return err
	}
	for _, c := range []struct {
		tick  time.Duration
		flags []string
	}{
		{time.Minute, nil},
		{time.Second, []string{"--alert-schedule", "@every 1s"}},
	} {
		if err := b.latencyOf(ctx, c.tick, c.flags); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) latencyOf(ctx context.Context, tick time.Duration, flags []string) error {
	told, err := newTold(ctx)
	if err != nil {
		return err
	}
	defer told.server.Close()
	part := "alerts-" + tick.String()
	p, addr, err := b.serve(ctx, part, flags)
	if err != nil {
		return err
	}
	defer p.stop()
	// All of it is in one local day.
	catalog := filepath.Join(b.dir, part+".yaml")
	if err := os.WriteFile(catalog, latencyCatalog(time.Now(), told.url), 0o600); err != nil {
		return fmt.Errorf("write catalog: %w", err)
	}
	if err := b.command(ctx, nil, nil, "apply", "--kafka", addr, "-f", catalog); err != nil {
		return err
	}
	client, err := kafka.Open(ctx, kafka.Config{Brokers: []string{addr}})
	if err != nil {
		return err
	}
	defer client.Close()
	if err := sleep(ctx, latencyStart); err != nil {
		return err
	}
	b.say("alerts by a tick of %s: %d crossings in a minute", tick, latencyCrossings)
	began, err := cross(ctx, client)
	if err != nil {
		return err
	}
	if err := p.await(ctx, latencyLimit, func() (bool, error) { return told.all(), nil }); err != nil {
		return err
	}
	l := latency{Tick: tick.Seconds(), Most: (tick + latencyMost).Seconds()}
	for i, at := range began {
		l.Took = append(l.Took, told.at[tenantName(i)].Sub(at).Seconds())
	}
	slices.Sort(l.Took)
	l.Median = (l.Took[(len(l.Took)-1)/2] + l.Took[len(l.Took)/2]) / 2
	b.report.Latencies = append(b.report.Latencies, l)
	return nil
}

// serve starts everything on a new folder and returns the address of its Kafka.
func (b *bench) serve(ctx context.Context, part string, flags []string) (*process, string, error) {
	var addrs [3]string
	for i := range addrs {
		var err error
		if addrs[i], err = freeAddr(); err != nil {
			return nil, "", err
		}
	}
	keys := filepath.Join(b.dir, part+".keys")
	key := "=whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	if err := os.WriteFile(keys, []byte(key), 0o600); err != nil {
		return nil, "", fmt.Errorf("write webhook keys: %w", err)
	}
	p, err := b.start(ctx, part, append([]string{
		"serve", "--data", filepath.Join(b.dir, part), "--kafka-listen", addrs[0],
		"--clickhouse-listen", addrs[1], "--admin", addrs[2], "--notify-allow", "127.0.0.0/8",
		"--notify-plain-http", "--webhook-keys-file", keys,
	}, flags...)...)
	if err != nil {
		return nil, "", err
	}
	return p, addrs[0], p.await(ctx, startTimeout, func() (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addrs[2]+"/readyz", nil)
		if err != nil {
			return false, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, err
		}
		return response.StatusCode == http.StatusOK, response.Body.Close()
	})
}

// latencyStart is when the budgets begin after they are applied.
const latencyStart = 5 * time.Second

// latencyCatalog has a tenant for each crossing, with a budget of 100 that is told at 80 %. A
// second of a GPU costs 1. Budgets of days and months, of a project and of all take turns.
func latencyCatalog(now time.Time, url string) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, `kind: PriceBook
name: live
effective_from: "2025-12-01T00:00:00Z"
currency: CNY
timezone: Etc/GMT%+d
prices: [{sku: gpu.live, per: second, price: "1"}]
`, now.UTC().Hour()-12) // where it is noon; their signs are the other way round
	from := now.Add(latencyStart - time.Second).UTC().Format(time.RFC3339)
	for i := range latencyCrossings {
		fmt.Fprintf(&out, "---\n{kind: Tenant, name: %[1]s, price_book: live, "+
			"effective_from: \"2025-12-01T00:00:00Z\"}\n"+
			"---\n{kind: Budget, name: %[1]s, tenant: %[1]s, period: %[2]s, scope: %[3]s, amount: \"100\", "+
			"thresholds: [\"0.8\"], notify: [{webhook: %[4]q}], effective_from: %[5]q}\n", tenantName(i),
			[]string{"day", "month"}[i%2], []string{"{}", "{project: p}"}[i/2%2], url, from)
	}
	return out.Bytes()
}

// cross has each tenant use 60 % of its budget, and then crosses 80 % by usage that ends as it is
// sent, one tenant after the other. It returns when each crossing was sent.
func cross(ctx context.Context, log *kafka.Client) ([]time.Time, error) {
	start := time.Now().Add(-3 * time.Minute).Truncate(time.Second)
	send := func(i int, from, until time.Time) error {
		event, err := json.Marshal(map[string]any{
			"specversion": "1.0", "type": schemas.TypeHeld, "source": "/bench",
			"id": metering.InstantOf(until.Unix()).String(),
			"data": map[string]any{
				"tenant": tenantName(i), "project": "p", "lease": "l", "session": tenantName(i),
				"session_start": start.UTC(), "purchase": "on_demand", "start": from.UTC(),
				"end": until.UTC(), "held": map[string]string{"gpu.live": "1"},
			},
		})
		if err != nil {
			return fmt.Errorf("encode usage: %w", err)
		}
		return log.Append(ctx, pipeline.Record{
			Topic: schemas.TopicUsage, Key: []byte(tenantName(i)), Value: event,
		})
	}
	for i := range latencyCrossings {
		if err := send(i, start, start.Add(time.Minute)); err != nil {
			return nil, err
		}
	}
	began := make([]time.Time, latencyCrossings)
	first := time.Now().Truncate(time.Minute).Add(time.Minute)
	for i := range began {
		if err := sleep(ctx, time.Until(first.Add(time.Duration(i)*latencyBetween))); err != nil {
			return nil, err
		}
		began[i] = time.Now()
		if err := send(i, began[i].Add(-30*time.Second), began[i]); err != nil {
			return nil, err
		}
	}
	return began, nil
}

// told is a receiver of webhooks that notes when it hears of each budget first.
type told struct {
	url    string
	server *http.Server

	mu sync.Mutex
	at map[string]time.Time // by budget
}

func newTold(ctx context.Context) (*told, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for webhooks: %w", err)
	}
	r := &told{url: "http://" + listener.Addr().String(), at: make(map[string]time.Time)}
	r.server = &http.Server{Handler: r, ReadTimeout: time.Minute}
	go func() { _ = r.server.Serve(listener) }() // ends with Close
	return r, nil
}

// ServeHTTP takes a webhook.
func (r *told) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	now := time.Now()
	var m struct {
		Data struct{ Labels struct{ Budget string } }
	}
	if err := json.NewDecoder(q.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.at[m.Data.Labels.Budget]; !known {
		r.at[m.Data.Labels.Budget] = now
	}
}

// all reports whether every crossing was told.
func (r *told) all() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.at) == latencyCrossings
}
