//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/suanpan/suanpan/pkg/kafka"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/schemas"
)

// openLog connects to the log as the product does.
func openLog(t *testing.T, s *system) *kafka.Client {
	t.Helper()
	client, err := kafka.Open(t.Context(), kafka.Config{Brokers: []string{s.kafka}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

func appendRaw(t *testing.T, s *system, records ...pipeline.Record) {
	t.Helper()
	if err := openLog(t, s).Append(t.Context(), records...); err != nil {
		t.Fatal(err)
	}
}

// readTopic returns all records of a topic with one partition.
func readTopic(t *testing.T, s *system, topic string) []pipeline.Record {
	t.Helper()
	records, err := openLog(t, s).Tail(topic).ReadToEnd(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return records
}

func headerOf(r pipeline.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// committed returns, by partition, what a consumer group has committed of the usage topic.
func (s *system) committed(group string) map[int]int64 {
	s.t.Helper()
	address, err := net.ResolveTCPAddr("tcp", s.kafka)
	if err != nil {
		s.t.Fatal(err)
	}
	partitions := make([]int, schemas.UsagePartitions)
	for i := range partitions {
		partitions[i] = i
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), startTimeout)
	defer cancel()
	client := kafkago.Client{Addr: address}
	answer, err := client.OffsetFetch(ctx, &kafkago.OffsetFetchRequest{
		GroupID: group, Topics: map[string][]int{schemas.TopicUsage: partitions},
	})
	if err == nil {
		err = answer.Error
	}
	if err != nil {
		s.t.Fatalf("read what %s has committed: %v", group, err)
	}
	offsets := make(map[int]int64)
	for _, p := range answer.Topics[schemas.TopicUsage] {
		offsets[p.Partition] = max(0, p.CommittedOffset)
	}
	return offsets
}

// waitArchive waits until the archive has so many records, each once: all that the log has, at the
// offsets that it has them, and committed as archived.
func (s *system) waitArchive(records int, timeout time.Duration) {
	s.t.Helper()
	want := fmt.Sprintf("%d\t%d\n", records, records)
	waitFor(s.t, "the archive", timeout, func() error {
		got, err := s.query(
			"SELECT count(), uniqExact(partition, offset) FROM suanpan.usage_events FINAL")
		if err == nil && got != want {
			err = fmt.Errorf("it has %q, want %q", got, want)
		}
		return err
	})
	ends, err := openLog(s.t, s).EndOffsets(s.t.Context(), schemas.TopicUsage)
	if err != nil {
		s.t.Fatal(err)
	}
	sum := int64(0)
	var lines strings.Builder
	for _, partition := range slices.Sorted(maps.Keys(ends)) {
		if end := ends[partition]; end > 0 {
			sum += end
			fmt.Fprintf(&lines, "%d\t%d\t%d\n", partition, end, end)
		}
	}
	if sum != int64(records) {
		s.t.Errorf("the usage topic has %d records, want %d", sum, records)
	}
	got, err := s.query("SELECT partition, count(), max(offset) + 1 FROM suanpan.usage_events FINAL " +
		"GROUP BY partition ORDER BY partition")
	if err != nil {
		s.t.Fatal(err)
	}
	if d := difference(got, lines.String()); d != "" {
		s.t.Errorf("the archive's partitions, records and ends are not those of the topic:\n%s", d)
	}
	s.waitFor("the archiver's commit", func() error {
		if got := s.committed("suanpan-archiver"); !maps.Equal(got, ends) {
			return fmt.Errorf("it is %v, want %v", got, ends)
		}
		return nil
	})
}
