package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/suanpan/suanpan/pkg/kafka"
	"github.com/suanpan/suanpan/schemas"
	"github.com/suanpan/suanpan/services/archiver"
	"github.com/suanpan/suanpan/services/rater"
)

// pathTimeout is when the path is given up: something is stuck.
const pathTimeout = 15 * time.Minute

// Names of measures that ratios are made of.
const (
	namePath    = "Kafka -> hour rows and archive"
	nameRead    = "read the topic, decoding nothing"
	nameWrite   = "write the same rows and archive, rating nothing"
	nameAlone   = "ClickHouse alone: load and group by hour"
	nameSettled = "... until every line item has its amount"
)

// path fills the usage topic, which does not count, and measures how long the services take to
// bring it into ClickHouse: until both have committed all of it. The limit of reading is measured
// on the same topic.
func (b *bench) path(ctx context.Context, rated *offline) error {
	broker, brokers, err := b.broker(ctx, "path")
	if err != nil {
		return err
	}
	defer broker.stop()
	engine, store, err := b.engine(ctx, "path")
	if err != nil {
		return err
	}
	defer engine.stop()
	flags := []string{"--kafka", brokers, "--clickhouse", "http://" + store + "/suanpan"}
	if err := b.fill(ctx, flags, broker, rated.windows); err != nil {
		return err
	}
	if err := b.services(ctx, flags, broker, engine, store, rated); err != nil {
		return err
	}
	if err := b.check(ctx, flags, store, rated); err != nil {
		return err
	}
	engine.stop()
	if !b.wants("limits") {
		return nil
	}
	return b.read(ctx, broker, brokers, rated.windows)
}

// fill loads the catalog and the market's prices and replays the fleet into the log.
func (b *bench) fill(ctx context.Context, flags []string, broker *process, windows int64) error {
	b.say("filling the topic")
	for _, args := range [][]string{
		{"migrate", flags[2], flags[3]},
		{"apply", "-f", b.catalog(), "--replay", flags[0], flags[1]},
		{"send", b.market(), "--replay", flags[0], flags[1]},
	} {
		if err := b.command(ctx, nil, io.Discard, args...); err != nil {
			return err
		}
	}
	began, spent := time.Now(), broker.cpu()
	if err := b.command(ctx, nil, io.Discard, append(b.replay(), flags[0], flags[1])...); err != nil {
		return err
	}
	b.report.add(measure{
		Name: "append to Kafka (make the events, compress, fsync)", Events: windows,
		Seconds: time.Since(began).Seconds(), CPU: []cpu{{"kafka", broker.cpu() - spent}},
	})
	return nil
}

// services measures how long the rater, the archiver and the settler, each in a process of its own,
// take for the whole topic.
func (b *bench) services(ctx context.Context, flags []string, broker, engine *process,
	store string, rated *offline,
) error {
	b.say("rating and archiving from Kafka to ClickHouse")
	client, err := kafka.Open(ctx, kafka.Config{Brokers: flags[1:2]})
	if err != nil {
		return err
	}
	defer client.Close()
	ends, err := client.EndOffsets(ctx, schemas.TopicUsage)
	if err != nil {
		return err
	}
	all := []*process{broker, engine}
	spent := []float64{broker.cpu(), engine.cpu(), 0, 0, 0}
	began := time.Now()
	var admin string // of the rater
	for _, name := range []string{"settler", "archiver", "rater"} {
		var p *process
		if p, admin, err = b.service(ctx, name, flags); err != nil {
			return err
		}
		defer p.stop()
		all = append(all, p)
	}
	archiving, rating := all[3], all[4]
	var ratedAt, archivedAt time.Time
	if err := rating.await(ctx, pathTimeout, func() (bool, error) {
		if err := note(ctx, flags[1], rater.Name, ends, &ratedAt); err != nil {
			return false, err
		}
		err := note(ctx, flags[1], archiver.Name, ends, &archivedAt)
		return !ratedAt.IsZero() && !archivedAt.IsZero(), err
	}); err != nil {
		return err
	}
	m := measure{Name: namePath, Events: rated.windows, Seconds: time.Since(began).Seconds()}
	for i, p := range all {
		m.CPU = append(m.CPU, cpu{p.name, p.cpu() - spent[i]})
	}
	b.report.add(m)
	b.report.RatedSeconds = ratedAt.Sub(began).Seconds()
	b.report.ArchivedSeconds = archivedAt.Sub(began).Seconds()
	b.report.RaterMiB, b.report.ArchiverMiB = rating.peak(), archiving.peak()
	b.report.KafkaMiB, b.report.ClickHouseMiB = broker.peak(), engine.peak()
	b.report.Written = counter(ctx, admin, "suanpan_rater_rows_total")
	return b.settled(ctx, all[2], store, began, rated.windows)
}

// service starts a service and returns the address of its admin server.
func (b *bench) service(ctx context.Context, name string, flags []string) (
	*process, string, error,
) {
	admin, err := freeAddr()
	if err != nil {
		return nil, "", err
	}
	args := append([]string{name, "--admin", admin, "--admin-pprof", "--log-level", "warn"}, flags...)
	if name == "rater" {
		// The records are young, but the last of them need not wait for others to come.
		args = append(args, "--flush-live", "1s")
	}
	p, err := b.start(ctx, name, args...)
	if err == nil && b.profiles != "" && name != "settler" {
		go b.fetchProfile(ctx, name, admin, "cpu", "profile")
		go b.fetchProfile(ctx, name, admin, "allocs", "allocs")
	}
	return p, admin, err
}

// settled waits until the settlements are those of all line items.
func (b *bench) settled(ctx context.Context, settler *process, store string, began time.Time,
	windows int64,
) error {
	if err := settler.await(ctx, pathTimeout, func() (bool, error) {
		same, err := query(ctx, store, `SELECT
			(SELECT sum(arraySum(quantity)) FROM suanpan.settlements FINAL)
				= (SELECT sum(base_quantity) FROM suanpan.line_items)`)
		return same == "1", err
	}); err != nil {
		return err
	}
	b.report.add(measure{Name: nameSettled, Events: windows, Seconds: time.Since(began).Seconds()})
	return nil
}

// note sets at to now when a group has committed all up to the ends, if it was not set before.
func note(ctx context.Context, broker, group string, ends map[int]int64, at *time.Time) error {
	if !at.IsZero() {
		return nil
	}
	addr, err := net.ResolveTCPAddr("tcp", broker)
	if err != nil {
		return fmt.Errorf("resolve broker: %w", err)
	}
	partitions := make([]int, 0, len(ends))
	for p := range ends {
		partitions = append(partitions, p)
	}
	client := kafkago.Client{Addr: addr, Timeout: 10 * time.Second}
	response, err := client.OffsetFetch(ctx, &kafkago.OffsetFetchRequest{
		GroupID: group, Topics: map[string][]int{schemas.TopicUsage: partitions},
	})
	if err != nil {
		return fmt.Errorf("fetch offsets of %s: %w", group, err)
	}
	for _, p := range response.Topics[schemas.TopicUsage] {
		if p.CommittedOffset < ends[p.Partition] && ends[p.Partition] > 0 {
			return nil
		}
	}
	if len(response.Topics[schemas.TopicUsage]) == len(ends) {
		*at = time.Now()
	}
	return nil
}

// check compares what the path made with what rating offline made.
func (b *bench) check(ctx context.Context, flags []string, store string, rated *offline) error {
	b.say("checking the bill")
	for _, c := range []struct {
		what string
		sql  string
		want int
	}{
		{"hour rows", "SELECT count() FROM suanpan.hours FINAL", len(rated.hours)},
		{"archived records", "SELECT count() FROM suanpan.usage_events FINAL", int(rated.windows)},
		{"dead letters", "SELECT count() FROM suanpan.dead_letters", 0},
	} {
		got, err := query(ctx, store, c.sql)
		if err != nil {
			return err
		}
		if got != strconv.Itoa(c.want) {
			return fmt.Errorf("there are %s %s, not %d", got, c.what, c.want)
		}
	}
	var stored, file bytes.Buffer
	if err := b.command(ctx, nil, &stored, append([]string{"summary"}, flags...)...); err != nil {
		return err
	}
	err := b.command(ctx, nil, &file, "rate", "--summary", "--catalog", b.catalog(), "--events",
		b.events)
	if err != nil {
		return err
	}
	if file.String() != rated.summary {
		return fmt.Errorf("'suanpan rate --summary' and the rater of this process do not agree")
	}
	if stored.String() != file.String() {
		return fmt.Errorf("'suanpan summary' and 'suanpan rate --summary' do not agree")
	}
	b.report.Charges = strings.Count(file.String(), "\n") - 1
	return nil
}

// read measures how fast the topic can be read by a member of a group that only counts.
func (b *bench) read(ctx context.Context, broker *process, addr string, windows int64) error {
	b.say("reading the topic, decoding nothing")
	client, err := kafka.Open(ctx, kafka.Config{Brokers: []string{addr}})
	if err != nil {
		return err
	}
	defer client.Close()
	began, spent, own := time.Now(), broker.cpu(), ownCPU()
	group, err := client.Group("bench", schemas.TopicUsage)
	if err != nil {
		return err
	}
	defer func() { _ = group.Close() }() // nothing is committed
	generation, err := group.Next(ctx)
	if err != nil {
		return err
	}
	for count := int64(0); count < windows; {
		records, err := generation.Fetch(ctx, time.Second)
		if err != nil {
			return err
		}
		count += int64(len(records))
	}
	b.report.add(measure{
		Name: nameRead, Events: windows, Seconds: time.Since(began).Seconds(),
		CPU: []cpu{{"reader", ownCPU() - own}, {"kafka", broker.cpu() - spent}},
	})
	return nil
}

// counter is the sum of a counter that a service shows, 0 where it cannot be had.
func counter(ctx context.Context, admin, name string) int {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/metrics", nil)
	if err != nil {
		return 0
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0
	}
	sum := 0.0
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == name {
			value, _ := strconv.ParseFloat(fields[1], 64)
			sum += value
		}
	}
	return int(sum)
}

// fetchProfile gets a profile of a service's first seconds. What goes wrong is told and no more:
// figures matter more than profiles.
func (b *bench) fetchProfile(ctx context.Context, name, admin, kind, path string) {
	time.Sleep(time.Second) // until it listens
	if err := fetch(ctx, "http://"+admin+"/debug/pprof/"+path+"?seconds=12",
		filepath.Join(b.profiles, name+"."+kind+".pprof")); err != nil {
		b.say("no %s profile of %s: %v", kind, name, err)
	}
}

// fetch copies what a URL answers into a file.
func fetch(ctx context.Context, url, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, response.Body)
	return errors.Join(err, file.Close())
}
