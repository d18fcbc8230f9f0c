package pipeline

import (
	"fmt"
	"slices"
	"time"

	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/schemas"
)

// Headers of a usage record that was found in another partition than its tenant's, and forwarded.
const (
	HeaderForwardedFrom = "suanpan-forwarded-from" // topic/partition/offset
	HeaderForwardedTime = "suanpan-forwarded-time" // when the log received it first, RFC 3339
)

// misplaced reports whether a record is not where its tenant's records are.
func (r *Rater) misplaced(record *Record, e *metering.Event) bool {
	return e.Tenant != "" &&
		(string(record.Key) != e.Tenant || r.config.Partition(e.Tenant) != record.Partition)
}

func forward(record *Record, tenant string) Record {
	from := fmt.Sprintf("%s/%d/%d", record.Topic, record.Partition, record.Offset)
	return Record{
		Topic: schemas.TopicUsage, Key: []byte(tenant), Value: record.Value,
		Headers: append(slices.Clip(record.Headers),
			Header{HeaderForwardedFrom, []byte(from)},
			Header{HeaderForwardedTime, []byte(record.Time.UTC().Format(time.RFC3339Nano))}),
	}
}

// received is when the log received a record first.
func received(record *Record) metering.Instant {
	if len(record.Headers) > 0 {
		if at, err := metering.ParseInstant(header(*record, HeaderForwardedTime)); err == nil {
			return at
		}
	}
	return metering.Instant(record.Time.UnixNano())
}
