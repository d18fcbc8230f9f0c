package kafka_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/suanpan/suanpan/pkg/kafka"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/tests/kafkatest"
)

// usageRecords returns records that look like usage events, of about 450 bytes and 25 tenants.
func usageRecords(topic string, count int) []pipeline.Record {
	const event = `{"specversion":"1.0","type":"suanpan.usage.held.v1","source":"exporter/n-%d",` +
		`"id":"01HZX%016x","time":"2026-05-%02dT%02d:%02d:00Z","data":{"tenant":"tenant-%d",` +
		`"project":"vision-%d","lease":"lease-%d","session":"s-%08x",` +
		`"session_start":"2026-05-01T00:00:00Z","purchase":"on_demand","region":"cn-north-1",` +
		`"start":"2026-05-01T%02d:00:00Z","end":"2026-05-01T%02d:01:00Z",` +
		`"held":{"gpu.a800-80g":"%d"},"labels":{"team":"nlp","stage":"pretraining"}}}`
	records := make([]pipeline.Record, count)
	for i := range records {
		records[i] = pipeline.Record{
			Topic: topic, Key: fmt.Appendf(nil, "tenant-%d", i%25),
			Value: fmt.Appendf(nil, event, i%997, uint64(i)*2654435761, i%28+1, i%24, i%60, i%25,
				i%13, i%4001, i%8009, i%24, i%24, i%8+1),
		}
	}
	return records
}

const benchmarkRecords = 50_000

func BenchmarkAppend_embedded(b *testing.B) { benchmarkAppend(b, startEmbedded(b)) }
func BenchmarkFetch_embedded(b *testing.B)  { benchmarkFetch(b, startEmbedded(b)) }

func BenchmarkAppend_apache(b *testing.B) {
	benchmarkAppend(b, broker{addr: kafkatest.Start(b).Addr()})
}

func BenchmarkFetch_apache(b *testing.B) {
	benchmarkFetch(b, broker{addr: kafkatest.Start(b).Addr()})
}

func benchmarkAppend(b *testing.B, on broker) {
	for _, compression := range []string{"none", "snappy", "lz4", "zstd"} {
		b.Run(compression, func(b *testing.B) {
			c := open(b, on, kafka.Config{Compression: compression})
			topic := newTopic(b, c, kafka.Topic{Partitions: 64, AppendTime: true})
			records := usageRecords(topic, benchmarkRecords)
			mustAppend(b, c, records...) // new partitions take a while
			b.ResetTimer()
			for range b.N {
				mustAppend(b, c, records...)
			}
			b.ReportMetric(float64(b.N*len(records))/b.Elapsed().Seconds(), "records/s")
		})
	}
}

func benchmarkFetch(b *testing.B, on broker) {
	for _, compression := range []string{"none", "snappy", "lz4", "zstd"} {
		b.Run(compression, func(b *testing.B) {
			c := open(b, on, kafka.Config{Compression: compression})
			topic := newTopic(b, c, kafka.Topic{Partitions: 64, AppendTime: true})
			records := usageRecords(topic, benchmarkRecords)
			for range b.N {
				mustAppend(b, c, records...)
			}
			_, generation := join(b, c, topic, topic)
			ctx := testContext(b)
			b.ReportAllocs()
			b.ResetTimer()
			for got := 0; got < b.N*len(records); {
				records, err := generation.Fetch(ctx, time.Second)
				if err != nil {
					b.Fatal(err)
				}
				got += len(records)
			}
			b.ReportMetric(float64(b.N*len(records))/b.Elapsed().Seconds(), "records/s")
		})
	}
}
