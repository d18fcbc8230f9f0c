package kafka_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/suanpan/suanpan/pkg/kafka"
	"github.com/suanpan/suanpan/pkg/pipeline"
)

// checkRecords fails unless two lists are the same, apart from what the log sets. It compares
// record by record: cmp.Diff of long lists takes very long.
func checkRecords(t *testing.T, want, got []pipeline.Record) {
	t.Helper()
	ignorePlace := cmpopts.IgnoreFields(pipeline.Record{}, "Partition", "Offset", "Time")
	for i := range min(len(want), len(got)) {
		w, g := want[i], got[i]
		g.Partition, g.Offset, g.Time = w.Partition, w.Offset, w.Time
		if !reflect.DeepEqual(w, g) {
			t.Fatalf("record %d differs (-want +got):\n%.2000s", i, cmp.Diff(w, g, ignorePlace))
		}
	}
	if len(want) != len(got) {
		t.Fatalf("got %d records, want %d", len(got), len(want))
	}
}

// byKey splits records by key, keeping their order.
func byKey(records []pipeline.Record) map[string][]pipeline.Record {
	keys := make(map[string][]pipeline.Record)
	for _, r := range records {
		keys[string(r.Key)] = append(keys[string(r.Key)], r)
	}
	return keys
}

// checkGapless fails unless the offsets within each partition follow one another from 0.
func checkGapless(t *testing.T, records []pipeline.Record) {
	t.Helper()
	next := make(map[int]int64)
	for _, r := range records {
		if r.Offset != next[r.Partition] {
			t.Fatalf("partition %d: got offset %d, want %d", r.Partition, r.Offset, next[r.Partition])
		}
		next[r.Partition]++
	}
}

func appendKeepsOrderAndContent(t *testing.T, b broker) {
	c := open(t, b, kafka.Config{})
	topic := newTopic(t, c, kafka.Topic{Partitions: 8})
	sent := numbered(topic, 0, 20_000)
	sent[3].Headers = []pipeline.Header{{Key: "a", Value: []byte("1")}, {Key: "", Value: nil}}
	sent[4].Value = nil
	sent[5].Value = []byte{}
	sent[6].Value = bytes.Repeat([]byte("x"), 900_000)
	mustAppend(t, c, sent[:9_000]...)
	mustAppend(t, c, sent[9_000:]...)

	_, generation := join(t, c, topic, topic)
	got := fetchN(t, generation, len(sent))
	checkGapless(t, got)
	received := byKey(got)
	for key, want := range byKey(sent) {
		checkRecords(t, want, received[key])
	}
}

func compressionsAreAllReadable(t *testing.T, b broker) {
	for _, name := range []string{"none", "snappy", "lz4", "zstd"} {
		c := open(t, b, kafka.Config{Compression: name})
		topic := newTopic(t, c, kafka.Topic{Partitions: 1})
		sent := numbered(topic, 0, 5_000)
		mustAppend(t, c, sent...)
		got, err := c.Tail(topic).ReadToEnd(testContext(t))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		checkRecords(t, sent, got)
	}
}

// weReadOthers checks encoding and decoding against kafka-go's own.
func weReadOthers(t *testing.T, b broker) {
	c := open(t, b, kafka.Config{})
	topic := newTopic(t, c, kafka.Topic{Partitions: 1})
	var values []string
	for _, compression := range []kafkago.Compression{
		0, kafkago.Gzip, kafkago.Snappy,
		kafkago.Lz4, kafkago.Zstd,
	} {
		value := "written with " + compression.String()
		values = append(values, value)
		w := &kafkago.Writer{
			Addr: kafkago.TCP(b.addr), Topic: topic, BatchSize: 1, MaxAttempts: 20,
			RequiredAcks: kafkago.RequireAll, Compression: compression,
			Transport: &kafkago.Transport{},
		}
		err := w.WriteMessages(testContext(t), kafkago.Message{
			Value:   []byte(value),
			Headers: []kafkago.Header{{Key: "h", Value: []byte("v")}},
		})
		w.Transport.(*kafkago.Transport).CloseIdleConnections()
		if err := errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
	}
	got, err := c.Tail(topic).ReadToEnd(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range got {
		if string(r.Value) != values[i] || len(r.Headers) != 1 || r.Headers[0].Key != "h" {
			t.Errorf("got record %d %q %v, want %q", i, r.Value, r.Headers, values[i])
		}
	}
	if len(got) != len(values) {
		t.Fatalf("got %d records, want %d", len(got), len(values))
	}
	mustAppend(t, c, pipeline.Record{Topic: topic, Key: []byte("k"), Value: []byte("ours")})
	r := kafkago.NewReader(kafkago.ReaderConfig{
		Brokers: []string{b.addr}, Topic: topic,
		MaxWait: 100 * time.Millisecond,
	})
	defer r.Close()
	if err := r.SetOffset(int64(len(values))); err != nil {
		t.Fatal(err)
	}
	m, err := r.ReadMessage(testContext(t))
	if err != nil || string(m.Value) != "ours" || string(m.Key) != "k" {
		t.Fatalf("kafka-go reads %q %q, %v", m.Key, m.Value, err)
	}
}

// transact produces values in a transaction of its own and ends it, or leaves it open.
func transact(t *testing.T, b broker, topic, id string, end *kgo.TransactionEndTry, v ...string) {
	t.Helper()
	ctx := testContext(t)
	client, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.TransactionalID(topic+id),
		kgo.DefaultProduceTopic(topic))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseAllowingRebalance)
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for _, value := range v {
		err := client.ProduceSync(ctx, kgo.StringRecord(value)).FirstErr()
		if err != nil {
			t.Fatal(err)
		}
	}
	if end != nil {
		if err := client.EndTransaction(ctx, *end); err != nil {
			t.Fatal(err)
		}
	}
}

func abortedTransactionsAreSkipped(t *testing.T, b broker) {
	c := open(t, b, kafka.Config{})
	topic := newTopic(t, c, kafka.Topic{Partitions: 1})
	abort, commit := kgo.TryAbort, kgo.TryCommit
	mustAppend(t, c, pipeline.Record{Topic: topic, Value: []byte("plain")})
	transact(t, b, topic, "1", &abort, "aborted", "aborted too")
	transact(t, b, topic, "2", &commit, "committed")
	transact(t, b, topic, "1", &commit, "of the same producer")
	transact(t, b, topic, "2", &abort, "aborted as well")
	mustAppend(t, c, pipeline.Record{Topic: topic, Value: []byte("end")})
	want := "plain|committed|of the same producer|end"
	// The end of a transaction is acknowledged before readers may see what follows it.
	tail, ctx := c.Tail(topic), testContext(t)
	var records []pipeline.Record
	for !strings.HasSuffix(values(records), "end") {
		more, err := tail.ReadToEnd(ctx)
		if err != nil {
			t.Fatalf("after %q: %v", values(records), err)
		}
		records = append(records, more...)
	}
	if got := values(records); got != want {
		t.Errorf("tail: got %q, want %q", got, want)
	}
	_, generation := join(t, c, topic, topic)
	if got := values(fetchN(t, generation, 4)); got != want {
		t.Errorf("group: got %q, want %q", got, want)
	}
}

func tailWaitsForNoOpenTransaction(t *testing.T, b broker) {
	c := open(t, b, kafka.Config{})
	topic := newTopic(t, c, kafka.Topic{Partitions: 1})
	mustAppend(t, c, pipeline.Record{Topic: topic, Value: []byte("plain")})
	transact(t, b, topic, "1", nil, "open")
	records, err := c.Tail(topic).ReadToEnd(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if got := values(records); got != "plain" {
		t.Errorf("got %q, want %q", got, "plain")
	}
}

func values(records []pipeline.Record) string {
	var all []string
	for _, r := range records {
		all = append(all, string(r.Value))
	}
	return strings.Join(all, "|")
}

func aRecordTooLargeIsAnError(t *testing.T, b broker) {
	c := open(t, b, kafka.Config{BatchBytes: 8 << 20}) // more than the broker takes
	topic := newTopic(t, c, kafka.Topic{Partitions: 1})
	noise := make([]byte, 1_500_000)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	// Together too large: the batch is split. Alone they fit.
	three := []pipeline.Record{
		{Topic: topic, Value: noise[:700_000]},
		{Topic: topic, Value: noise[:700_001]},
		{Topic: topic, Value: noise[:700_002]},
	}
	mustAppend(t, c, three...)
	err := c.Append(testContext(t), pipeline.Record{Topic: topic, Value: noise})
	if !errors.Is(err, kafka.ErrTooLarge) {
		t.Fatalf("got error %v, want ErrTooLarge", err)
	}
	got, err := c.Tail(topic).ReadToEnd(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	checkRecords(t, three, got)
}

func aRecordWithoutKeyNeedsOnePartition(t *testing.T, b broker) {
	c := open(t, b, kafka.Config{})
	topic := newTopic(t, c, kafka.Topic{Partitions: 2})
	err := c.Append(testContext(t), pipeline.Record{Topic: topic, Value: []byte("v")})
	if err == nil || !strings.Contains(err.Error(), "record without key") {
		t.Fatalf("got error %v", err)
	}
	err = c.Append(testContext(t), pipeline.Record{Topic: topic + ".absent", Key: []byte("k")})
	if !errors.Is(err, kafkago.UnknownTopicOrPartition) {
		t.Fatalf("unknown topic: got error %v", err)
	}
}

func aRestartLosesNothing(t *testing.T, b broker) {
	if b.restart == nil {
		t.Skip("SKIPPED: this broker cannot be restarted")
	}
	c := open(t, b, kafka.Config{})
	topic := newTopic(t, c, kafka.Topic{Partitions: 4})
	_, generation := join(t, c, topic, topic)
	appended := make(chan error, 1)
	ctx := testContext(t)
	first := numbered(topic, 0, 100)
	mustAppend(t, c, first...)
	go func() { appended <- appendRounds(ctx, c, topic) }()
	b.restart(t)
	if err := <-appended; err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	group, generation := rejoin(t, c, topic, generation)
	defer group.Close()
	for len(seen) < 100*roundCount {
		for _, r := range fetchN(t, generation, 1) {
			seen[string(r.Value)] = true
		}
	}
}

const roundCount = 50

// appendRounds appends 100 records at a time, each of the rounds with numbers of its own.
func appendRounds(ctx context.Context, c *kafka.Client, topic string) error {
	for round := 1; round < roundCount; round++ {
		if err := c.Append(ctx, numbered(topic, 100*round, 100*(round+1))...); err != nil {
			return err
		}
	}
	return nil
}

// rejoin waits until a generation has noticed that its broker was away, and returns a new member
// of another group, which reads everything.
func rejoin(
	t *testing.T, c *kafka.Client, topic string, old pipeline.Generation,
) (*kafka.Group, pipeline.Generation) {
	t.Helper()
	ctx := testContext(t)
	for {
		if _, err := old.Fetch(ctx, 100e6); errors.Is(err, pipeline.ErrGenerationEnded) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return join(t, c, topic+".again", topic)
}
