package kafka

import (
	"errors"
	"fmt"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"github.com/suanpan/suanpan/pkg/pipeline"
)

const (
	apiProduce     = protocol.Produce
	apiFetch       = protocol.Fetch
	apiListOffsets = protocol.ListOffsets
)

// ErrTooLarge is returned for a record that the log does not take because of its size.
var ErrTooLarge = errors.New("record too large for the log")

// acknowledge takes what a response acknowledges off the parts that were sent, and returns the
// first error of the others: a permanent one, if there is one.
func (c *Client) acknowledge(response []byte, records []pipeline.Record, sent []*part) error {
	type key struct {
		topic     string
		partition int32
	}
	parts := make(map[key]*part, len(sent))
	for _, p := range sent {
		parts[key{p.topic, p.partition}] = p
	}
	var first error
	r := reader{buf: response}
	for range r.length() {
		topic := r.string()
		for range r.length() {
			partition, code, message := readAcknowledgement(&r)
			p := parts[key{topic, partition}]
			if p == nil || r.err != nil {
				continue
			}
			delete(parts, key{topic, partition})
			err := p.acknowledge(kafkago.Error(code), message, records)
			if err != nil && (first == nil || !transient(err)) {
				first = err
			}
		}
	}
	if r.err != nil {
		return fmt.Errorf("decode produce response: %w", r.err)
	}
	if len(parts) > 0 && first == nil {
		return fmt.Errorf("produce response lacks %d of %d partitions", len(parts), len(sent))
	}
	return first
}

func readAcknowledgement(r *reader) (partition int32, code int16, message string) {
	partition, code = r.int32(), r.int16()
	r.bytes(24) // offset, append time, start of the log
	for range r.length() {
		r.int32() // position of a record in the batch
		if text := r.string(); message == "" {
			message = text
		}
	}
	if text := r.string(); text != "" {
		message = text
	}
	return partition, code, message
}

// acknowledge takes the batch in flight off a part if it was acknowledged.
func (p *part) acknowledge(code kafkago.Error, message string, records []pipeline.Record) error {
	switch code {
	case 0:
		p.which = p.which[p.count:]
		p.count, p.alone = 0, false
		return nil
	case kafkago.MessageSizeTooLarge, kafkago.RecordListTooLarge:
		if p.count > 1 {
			p.shrink(p.count)
			return nil
		}
		size := sizeOf(&records[p.which[0]])
		return permanent(fmt.Errorf("append to %s partition %d: record of %d bytes: %w: %w",
			p.topic, p.partition, size, ErrTooLarge, code))
	}
	if message != "" {
		message = " (" + message + ")"
	}
	return fmt.Errorf("append to %s partition %d: %w%s", p.topic, p.partition, code, message)
}
