package kafka

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/suanpan/suanpan/pkg/pipeline"
)

// batch is a record batch as the broker sent it. Its records are still encoded.
type batch struct {
	first, last int64 // offsets
	attributes  int16
	firstTime   int64 // milliseconds, as maxTime
	maxTime     int64
	producer    int64
	count       int32
	body        []byte
}

// nextBatch takes a batch off the front of raw and returns what follows. A batch that is cut off,
// as the last of a response may be, is errTruncated.
func nextBatch(raw []byte) (b batch, rest []byte, err error) {
	if len(raw) < batchHeaderBytes {
		return b, nil, errTruncated
	}
	size := int64(int32(binary.BigEndian.Uint32(raw[batchLengthAt:]))) + batchLengthAt + 4
	if size > int64(len(raw)) {
		return b, nil, errTruncated
	}
	if magic := raw[batchMagicAt]; magic != 2 {
		return b, nil, fmt.Errorf("record batch has format %d instead of 2", magic)
	}
	if size < batchHeaderBytes {
		return b, nil, fmt.Errorf("record batch of %d bytes", size)
	}
	crc := binary.BigEndian.Uint32(raw[batchCRCAt:])
	if sum := crc32.Checksum(raw[batchAttributesAt:size], castagnoli); sum != crc {
		return b, nil, fmt.Errorf("record batch has checksum %08x instead of %08x", sum, crc)
	}
	r := reader{buf: raw[:size:size]}
	b.first = r.int64()
	r.pos = batchAttributesAt
	b.attributes = r.int16()
	b.last = b.first + int64(r.int32())
	b.firstTime, b.maxTime, b.producer = r.int64(), r.int64(), r.int64()
	r.bytes(6) // the producer's epoch and sequence
	b.count = r.int32()
	b.body = r.buf[r.pos:]
	return b, raw[size:], r.err
}

func (b *batch) transactional() bool { return b.attributes&attributeTransaction != 0 }
func (b *batch) control() bool       { return b.attributes&attributeControl != 0 }

// aborts reports whether a control batch marks an aborted transaction: the key of its only record
// is a version and a type, and the type is 0.
func (b *batch) aborts() bool {
	r := reader{buf: b.body}
	r.varint()
	r.bytes(1)
	r.varint()
	r.varint()
	key := r.varbytes()
	return len(key) >= 4 && key[2] == 0 && key[3] == 0
}

// appendRecords appends the batch's records from offset `from` on to dst. Their bytes stay in the
// batch's buffer.
func (b *batch) appendRecords(
	dst []pipeline.Record, topic string, partition int, from int64,
) ([]pipeline.Record, error) {
	body := b.body
	if codec := compression(b.attributes & attributeCodec); codec != 0 {
		var err error
		if body, err = decompress(codec, body); err != nil {
			return dst, err
		}
	}
	if int64(b.count) > int64(len(body)) || b.count < 0 {
		return dst, fmt.Errorf("batch claims %d records in %d bytes", b.count, len(body))
	}
	r := reader{buf: body}
	for range b.count {
		record, err := b.record(&r)
		if err != nil {
			return dst, fmt.Errorf("decode record batch at offset %d: %w", b.first, err)
		}
		if record.Offset >= from {
			record.Topic, record.Partition = topic, partition
			dst = append(dst, record)
		}
	}
	return dst, nil
}

var errHeaders = errors.New("impossible number of headers")

func (b *batch) record(r *reader) (pipeline.Record, error) {
	size := r.varint()
	end := int64(r.pos) + size
	if r.err != nil || size < 0 || end > int64(len(r.buf)) {
		return pipeline.Record{}, errTruncated
	}
	r.bytes(1) // attributes
	at := b.firstTime + r.varint()
	if b.attributes&attributeAppendTime != 0 {
		at = b.maxTime
	}
	record := pipeline.Record{
		Offset: b.first + r.varint(),
		Time:   time.UnixMilli(at).UTC(),
		Key:    r.varbytes(),
		Value:  r.varbytes(),
	}
	if n := r.varint(); n != 0 {
		if n < 0 || n > size {
			return pipeline.Record{}, errHeaders
		}
		record.Headers = make([]pipeline.Header, n)
		for i := range record.Headers {
			record.Headers[i] = pipeline.Header{Key: string(r.varbytes()), Value: r.varbytes()}
		}
	}
	if r.err == nil && int64(r.pos) != end {
		return pipeline.Record{}, errTruncated
	}
	return record, r.err
}
