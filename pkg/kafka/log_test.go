package kafka_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/suanpan/suanpan/pkg/kafka"
	"github.com/suanpan/suanpan/pkg/pipeline"
	embedded "github.com/suanpan/suanpan/services/embedded/kafka"
	"github.com/suanpan/suanpan/tests/kafkatest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// broker is the log that a scenario runs on.
type broker struct {
	addr string
	// restart ends the broker as hard as it can and starts it again; nil where it cannot.
	restart func(t *testing.T)
}

// scenarios run on every broker. Their topics are their own.
var scenarios = []struct {
	name string
	run  func(t *testing.T, b broker)
}{
	{"append keeps order and content", appendKeepsOrderAndContent},
	{"compressions are all readable", compressionsAreAllReadable},
	{"kafka-go and we read each other", weReadOthers},
	{"aborted transactions are skipped", abortedTransactionsAreSkipped},
	{"a record too large is an error", aRecordTooLargeIsAnError},
	{"a record without key needs one partition", aRecordWithoutKeyNeedsOnePartition},
	{"topics are created once and checked", topicsAreCreatedOnceAndChecked},
	{"append time is the broker's", appendTimeIsTheBrokers},
	{"tail reads to the end", tailReadsToTheEnd},
	{"tail waits for no open transaction", tailWaitsForNoOpenTransaction},
	{"read returns a range", readReturnsARange},
	{"commit and resume", commitAndResume},
	{"an offset beyond the end stops", anOffsetBeyondTheEndStops},
	{"two members share the partitions", twoMembersShareThePartitions},
	{"fetch is bounded", fetchIsBounded},
	{"a restart loses nothing", aRestartLosesNothing},
}

func TestLog_embedded(t *testing.T) {
	runScenarios(t, startEmbedded(t))
}

// TestLog_apache runs on Apache Kafka: the one at SUANPAN_TEST_KAFKA (host:port), else one that is
// started for the test.
func TestLog_apache(t *testing.T) {
	if addr := os.Getenv("SUANPAN_TEST_KAFKA"); addr != "" {
		runScenarios(t, broker{addr: addr})
		return
	}
	kafka := kafkatest.Start(t)
	runScenarios(t, broker{addr: kafka.Addr(), restart: func(t *testing.T) {
		kafka.Kill(t)
		kafka.Restart(t)
	}})
}

func runScenarios(t *testing.T, b broker) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) { s.run(t, b) })
	}
}

func startEmbedded(t testing.TB) broker {
	t.Helper()
	config := embedded.Config{DataDir: t.TempDir(), Listen: "127.0.0.1:0"}
	running := runEmbedded(t, config)
	config.Listen = running.Addr()
	t.Cleanup(func() { running.Close() })
	return broker{addr: running.Addr(), restart: func(t *testing.T) {
		running.Close()
		running = runEmbedded(t, config)
	}}
}

func runEmbedded(t testing.TB, config embedded.Config) *embedded.Broker {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	b, err := embedded.Start(context.Background(), config, log)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// open returns a client that is closed when the test ends.
func open(t testing.TB, b broker, config kafka.Config) *kafka.Client {
	t.Helper()
	config.Brokers = []string{b.addr}
	c, err := kafka.Open(testContext(t), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// testContext ends before the test's deadline would, so that what hangs is seen.
func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

var topics atomic.Int64

// newTopic creates a topic of its own for a test.
func newTopic(t testing.TB, c *kafka.Client, topic kafka.Topic) string {
	t.Helper()
	topic.Name = fmt.Sprintf("test.%d.%d", time.Now().UnixNano(), topics.Add(1))
	if err := c.EnsureTopics(testContext(t), topic); err != nil {
		t.Fatal(err)
	}
	return topic.Name
}

// numbered returns records from..until-1 of a topic: their keys are those of some tenants, their
// values their numbers.
func numbered(topic string, from, until int) []pipeline.Record {
	records := make([]pipeline.Record, 0, until-from)
	for i := from; i < until; i++ {
		records = append(records, pipeline.Record{
			Topic: topic,
			Key:   fmt.Appendf(nil, "tenant-%d", i%17),
			Value: fmt.Appendf(nil, "%d", i),
		})
	}
	return records
}

func mustAppend(t testing.TB, c *kafka.Client, records ...pipeline.Record) {
	t.Helper()
	if err := c.Append(testContext(t), records...); err != nil {
		t.Fatal(err)
	}
}

// join returns the first generation of a new member.
func join(t testing.TB, c *kafka.Client, id, topic string) (*kafka.Group, pipeline.Generation) {
	t.Helper()
	group, err := c.Group(id, topic)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { group.Close() })
	generation, err := group.Next(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	return group, generation
}

// fetchN fetches n records or more.
func fetchN(t testing.TB, g pipeline.Generation, n int) []pipeline.Record {
	t.Helper()
	ctx := testContext(t)
	var all []pipeline.Record
	for len(all) < n {
		records, err := g.Fetch(ctx, time.Second)
		if err != nil {
			t.Fatalf("after %d of %d records: %v", len(all), n, err)
		}
		all = append(all, records...)
	}
	return all
}
