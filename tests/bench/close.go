package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/suanpan/suanpan/pkg/clickhouse"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/rating"
)

// The months that are closed: many rows, and many tenants.
var closeCases = []struct {
	name          string
	tenants, rows int
}{
	{"close and invoice 1,000,000 hour rows of 100 tenants", 100, 1_000_000},
	{"close and invoice 10,000 tenants with 20 hour rows each", 10_000, 200_000},
}

const (
	closeBook  = 1_764_518_400 // 2025-12-01 in Shanghai
	closeStart = 1_767_196_800 // 2026-01-01 in Shanghai
	closeHours = 700           // of a session, at most
	closeBatch = 50_000
	closeLimit = 10 * time.Minute
)

// close measures from the command that closes a month to its last invoice. The rows are written
// before, as a rater would have; the closes go through the log and a rater.
func (b *bench) close(ctx context.Context, _ *offline) error {
	for i, c := range closeCases {
		if err := b.closeOne(ctx, fmt.Sprintf("close%d", i), c.name, c.tenants, c.rows); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) closeOne(ctx context.Context, part, name string, tenants, rows int) error {
	broker, kafka, err := b.broker(ctx, part)
	if err != nil {
		return err
	}
	defer broker.stop()
	engine, addr, err := b.engine(ctx, part)
	if err != nil {
		return err
	}
	defer engine.stop()
	url := "http://" + addr + "/suanpan"
	flags := []string{"--kafka", kafka, "--clickhouse", url}
	b.say("%s: writing the rows", name)
	if err := fillMonth(ctx, url, tenants, rows); err != nil {
		return err
	}
	catalog := filepath.Join(b.dir, part+".yaml")
	if err := os.WriteFile(catalog, closeCatalog(tenants), 0o600); err != nil {
		return fmt.Errorf("write catalog: %w", err)
	}
	args := []string{"apply", "--kafka", kafka, "--replay", "-f", catalog}
	if err := b.command(ctx, nil, nil, args...); err != nil {
		return err
	}
	rater, err := b.start(ctx, part+"-rater", append([]string{"rater", "--admin", ""}, flags...)...)
	if err != nil {
		return err
	}
	defer rater.stop()
	b.say("%s", name)
	before := []float64{rater.cpu(), engine.cpu(), broker.cpu()}
	began := time.Now()
	var out bytes.Buffer
	args = append([]string{"close", "--period", "2026-01", "--wait", closeLimit.String()}, flags...)
	if err := b.command(ctx, nil, &out, args...); err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	if n := strings.Count(out.String(), " issued "); n != tenants {
		return fmt.Errorf("%d of %d invoices were issued", n, tenants)
	}
	b.report.add(measure{
		Name: name, Events: int64(rows), Seconds: took, CPU: []cpu{
			{"biller", b.ended.cpu},
			{"rater", rater.cpu() - before[0]},
			{"clickhouse", engine.cpu() - before[1]},
			{"kafka", broker.cpu() - before[2]},
		},
	})
	b.report.BillerMiB = max(b.report.BillerMiB, b.ended.peak)
	b.report.BillerEngineMiB = max(b.report.BillerEngineMiB, engine.peak())
	return nil
}

// closeCatalog is a seller, a tax and a price, and the tenants.
func closeCatalog(tenants int) []byte {
	var out bytes.Buffer
	out.WriteString(`kind: Seller
name: cloud
legal_name: Cloud Ltd.
timezone: Asia/Shanghai
---
kind: TaxRule
name: vat
category: S
rate: "6"
---
kind: PriceBook
name: public
effective_from: "2025-12-01T00:00:00+08:00"
currency: CNY
timezone: Asia/Shanghai
prices: [{sku: gpu.a800-80g, per: hour, price: "30.00"}]
`)
	for i := range tenants {
		fmt.Fprintf(&out, "---\n{kind: Tenant, name: %s, price_book: public}\n", tenantName(i))
	}
	return out.Bytes()
}

func tenantName(i int) string { return fmt.Sprintf("tenant-%05d", i) }

// fillMonth writes the rows of a month: sessions of some hundred hours, of several projects, teams
// and models.
func fillMonth(ctx context.Context, url string, tenants, rows int) error {
	store, err := clickhouse.Open(ctx, clickhouse.Config{URL: url})
	if err != nil {
		return err
	}
	defer store.Close()
	if err := store.Migrate(ctx); err != nil {
		return err
	}
	each := rows / tenants
	changes := new(rating.Changes)
	for i := range tenants {
		charge := monthCharge(i)
		for n := range each {
			if n%closeHours == 0 {
				changes.Sessions = append(changes.Sessions, monthSession(charge, n/closeHours))
			}
			changes.Hours = append(changes.Hours, monthHour(charge, n))
		}
		if changes.Len() >= closeBatch || i == tenants-1 {
			if err := store.Write(ctx, changes); err != nil {
				return err
			}
			changes = new(rating.Changes)
		}
	}
	return nil
}

func monthCharge(tenant int) *rating.Charge {
	return &rating.Charge{
		Tenant: tenantName(tenant), Book: "public", BookVersion: closeBook, SKU: "gpu.a800-80g",
		Purchase: "on_demand", Band: "standard", Period: "2026-01",
	}
}

func sessionKey(charge *rating.Charge, n int) rating.SessionKey {
	return rating.SessionKey{Tenant: charge.Tenant, Session: fmt.Sprintf("%s-%03d", charge.Tenant, n)}
}

func monthSession(charge *rating.Charge, n int) rating.SessionRow {
	s := rating.SessionRow{SessionKey: sessionKey(charge, n), SKU: charge.SKU, Milli: 1000}
	s.Project, s.Lease = fmt.Sprintf("project-%d", n%7), fmt.Sprintf("lease-%d", n)
	s.SessionStart = metering.InstantOf(closeStart)
	s.Labels = []metering.Label{
		{Key: "model", Value: fmt.Sprintf("model-%d", n%5)},
		{Key: "stage", Value: []string{"validation", "pretraining", "finetuning"}[n%3]},
		{Key: "team", Value: fmt.Sprintf("team-%d", n%4)},
	}
	return s
}

func monthHour(charge *rating.Charge, n int) rating.Row {
	hour := int64(closeStart + n%closeHours*3600)
	seconds := uint16(3600 - n%600)
	return rating.Row{
		HourKey: rating.HourKey{SessionKey: sessionKey(charge, n/closeHours), Hour: hour},
		SKU:     charge.SKU, Milli: 1000, Used: metering.Set{{From: 0, To: seconds}},
		Segments: []rating.Segment{{
			Charge: charge, Billing: charge.Period, Day: (hour + 8*3600) / 86_400, To: seconds,
			Seconds: seconds,
		}},
	}
}
