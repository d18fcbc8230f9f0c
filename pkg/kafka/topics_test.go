package kafka_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/suanpan/suanpan/pkg/kafka"
	"github.com/suanpan/suanpan/pkg/pipeline"
)

func topicsAreCreatedOnceAndChecked(t *testing.T, b broker) {
	c := open(t, b, kafka.Config{})
	ctx := testContext(t)
	topic := kafka.Topic{Partitions: 4, AppendTime: true}
	topic.Name = newTopic(t, c, topic)
	if err := c.EnsureTopics(ctx, topic); err != nil {
		t.Fatalf("ensure again: %v", err)
	}
	other := topic
	other.Partitions = 8
	err := c.EnsureTopics(ctx, other)
	if err == nil || !strings.Contains(err.Error(), "it has 4 partitions instead of 8") {
		t.Errorf("another number of partitions: got error %v", err)
	}
	other = topic
	other.AppendTime = false
	err = c.EnsureTopics(ctx, other)
	if err == nil || !strings.Contains(err.Error(), "message.timestamp.type is LogAppendTime") {
		t.Errorf("another kind of time: got error %v", err)
	}

	transport := &kafkago.Transport{}
	defer transport.CloseIdleConnections()
	admin := &kafkago.Client{Addr: kafkago.TCP(b.addr), Transport: transport}
	forgetful := kafka.Topic{Name: topic.Name + ".forgetful", Partitions: 1}
	created, err := admin.CreateTopics(ctx, &kafkago.CreateTopicsRequest{
		Topics: []kafkago.TopicConfig{{
			Topic: forgetful.Name, NumPartitions: 1,
			ReplicationFactor: 1, ConfigEntries: []kafkago.ConfigEntry{
				{ConfigName: "retention.ms", ConfigValue: "604800000"},
			},
		}},
	})
	if err := errors.Join(err, created.Errors[forgetful.Name]); err != nil {
		t.Fatal(err)
	}
	err = c.EnsureTopics(ctx, forgetful)
	if err == nil || !strings.Contains(err.Error(), "retention.ms is 604800000 instead of -1") {
		t.Errorf("a topic that forgets: got error %v", err)
	}
}

func appendTimeIsTheBrokers(t *testing.T, b broker) {
	c := open(t, b, kafka.Config{})
	stamped := newTopic(t, c, kafka.Topic{Partitions: 1, AppendTime: true})
	plain := newTopic(t, c, kafka.Topic{Partitions: 1})
	old := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	before := time.Now().Truncate(time.Millisecond)
	for _, topic := range []string{stamped, plain} {
		for _, compression := range []kafkago.Compression{0, kafkago.Snappy, kafkago.Zstd} {
			transport := &kafkago.Transport{}
			w := &kafkago.Writer{
				Addr: kafkago.TCP(b.addr), Topic: topic, Transport: transport,
				RequiredAcks: kafkago.RequireAll, BatchTimeout: 10 * time.Millisecond,
				Compression: compression,
			}
			err := w.WriteMessages(testContext(t),
				kafkago.Message{Time: old, Value: []byte("a")},
				kafkago.Message{Time: old.Add(time.Hour), Value: []byte("b")},
				kafkago.Message{Time: old.Add(-time.Hour), Value: []byte("c")})
			transport.CloseIdleConnections()
			if err := errors.Join(err, w.Close()); err != nil {
				t.Fatal(err)
			}
		}
		mustAppend(t, c, pipeline.Record{Topic: topic, Value: []byte("d"), Time: old})
	}
	after := time.Now()
	records, err := c.Tail(stamped).ReadToEnd(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := values(records), "a|b|c|a|b|c|a|b|c|d"; got != want {
		t.Fatalf("got records %s, want %s", got, want)
	}
	last := before
	for _, r := range records {
		if r.Time.Before(last) || r.Time.After(after) || r.Time.Location() != time.UTC {
			t.Errorf("%s: got time %v, want one in [%v, %v]", r.Value, r.Time, last, after)
		}
		last = r.Time
	}
	records, err = c.Tail(plain).ReadToEnd(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := records[1].Time, old.Add(time.Hour); !got.Equal(want) {
		t.Errorf("topic with producers' time: got %v, want %v", got, want)
	}
}

func tailReadsToTheEnd(t *testing.T, b broker) {
	c := open(t, b, kafka.Config{})
	topic := newTopic(t, c, kafka.Topic{Partitions: 1})
	tail := c.Tail(topic)
	defer tail.Close()
	for round, count := range []int{0, 3, 0, 5000, 1} {
		sent := numbered(topic, 10_000*round, 10_000*round+count)
		mustAppend(t, c, sent...)
		got, err := tail.ReadToEnd(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		if values(got) != values(sent) {
			t.Fatalf("round %d: got %d records, want %d", round, len(got), len(sent))
		}
	}
	two := newTopic(t, c, kafka.Topic{Partitions: 2})
	_, err := c.Tail(two).ReadToEnd(testContext(t))
	if err == nil || !strings.Contains(err.Error(), "2 partitions instead of 1") {
		t.Errorf("a topic of two partitions: got error %v", err)
	}
}

func readReturnsARange(t *testing.T, b broker) {
	c := open(t, b, kafka.Config{})
	ctx := testContext(t)
	topic := newTopic(t, c, kafka.Topic{Partitions: 1})
	mustAppend(t, c, numbered(topic, 0, 3000)...)
	records, err := c.Read(ctx, topic, 0, 1234, 1235)
	if err != nil || values(records) != "1234" || records[0].Offset != 1234 {
		t.Errorf("one record: got %q, %v", values(records), err)
	}
	records, err = c.Read(ctx, topic, 0, 1000, 3000)
	if err != nil || len(records) != 2000 || string(records[0].Value) != "1000" {
		t.Errorf("2000 records: got %d, %v", len(records), err)
	}
	if _, err := c.Read(ctx, topic, 0, 3001, 3002); !errors.Is(err, kafka.ErrOffset) {
		t.Errorf("beyond the end: got error %v, want ErrOffset", err)
	}
	if _, err := c.Read(ctx, topic, 1, 0, 1); err == nil {
		t.Error("a partition that does not exist: got no error")
	}
	ends, err := c.EndOffsets(ctx, topic)
	if err != nil || len(ends) != 1 || ends[0] != 3000 {
		t.Errorf("end offsets: got %v, %v", ends, err)
	}
}
