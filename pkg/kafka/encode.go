package kafka

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/suanpan/suanpan/pkg/pipeline"
)

// Layout of a record batch, format 2: the positions of the fields that are set last, or read.
const (
	batchLengthAt     = 8
	batchMagicAt      = 16
	batchCRCAt        = 17
	batchAttributesAt = 21
	batchHeaderBytes  = 61

	recordOverhead = 32 // more than the lengths and deltas of a record without headers take

	attributeCodec       = 0x07
	attributeAppendTime  = 0x08
	attributeTransaction = 0x10
	attributeControl     = 0x20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encoder appends record batches to a buffer. It is not safe for concurrent use.
type encoder struct {
	packet  []byte // a request under construction
	records []byte // the records of a batch before compression
}

// sizeOf returns what a record takes in a batch at most.
func sizeOf(r *pipeline.Record) int {
	n := recordOverhead + len(r.Key) + len(r.Value)
	for i := range r.Headers {
		n += recordOverhead + len(r.Headers[i].Key) + len(r.Headers[i].Value)
	}
	return n
}

// appendBatch appends a batch with records[i] for every i of which, in this order, to dst. All of
// them have the time now, in milliseconds; topics with LogAppendTime replace it.
func (e *encoder) appendBatch(
	dst []byte, records []pipeline.Record, which []int32, now int64, codec compression,
) ([]byte, error) {
	start := len(dst)
	dst = appendInt64(dst, 0)            // first offset, the broker's to set
	dst = appendInt32(dst, 0)            // length, below
	dst = appendInt32(dst, -1)           // leader epoch, the broker's to set
	dst = append(dst, 2)                 // format
	dst = appendInt32(dst, 0)            // CRC, below
	dst = appendInt16(dst, int16(codec)) // attributes
	dst = appendInt32(dst, int32(len(which)-1))
	dst = appendInt64(dst, now) // first timestamp
	dst = appendInt64(dst, now) // largest timestamp
	dst = appendInt64(dst, -1)  // producer: not idempotent
	dst = appendInt16(dst, -1)
	dst = appendInt32(dst, -1)
	dst = appendInt32(dst, int32(len(which)))
	if codec == 0 {
		dst = appendRecords(dst, records, which)
	} else {
		e.records = appendRecords(e.records[:0], records, which)
		var err error
		if dst, err = appendCompressed(dst, codec, e.records); err != nil {
			return nil, err
		}
	}
	batch := dst[start:]
	binary.BigEndian.PutUint32(batch[batchLengthAt:], uint32(len(batch)-batchLengthAt-4))
	crc := crc32.Checksum(batch[batchAttributesAt:], castagnoli)
	binary.BigEndian.PutUint32(batch[batchCRCAt:], crc)
	return dst, nil
}

func appendRecords(dst []byte, records []pipeline.Record, which []int32) []byte {
	for delta, i := range which {
		r := &records[i]
		body := 2 + varintBytes(int64(delta)) + varbytesBytes(r.Key) + varbytesBytes(r.Value) +
			varintBytes(int64(len(r.Headers)))
		for j := range r.Headers {
			h := &r.Headers[j]
			body += varintBytes(int64(len(h.Key))) + len(h.Key) + varbytesBytes(h.Value)
		}
		dst = binary.AppendVarint(dst, int64(body))
		dst = append(dst, 0, 0) // attributes, time since the first record
		dst = binary.AppendVarint(dst, int64(delta))
		dst = appendVarbytes(dst, r.Key)
		dst = appendVarbytes(dst, r.Value)
		dst = binary.AppendVarint(dst, int64(len(r.Headers)))
		for j := range r.Headers {
			h := &r.Headers[j]
			dst = append(binary.AppendVarint(dst, int64(len(h.Key))), h.Key...)
			dst = appendVarbytes(dst, h.Value)
		}
	}
	return dst
}

func appendVarbytes(dst, b []byte) []byte {
	if b == nil {
		return append(dst, 1) // zigzag of -1
	}
	return append(binary.AppendVarint(dst, int64(len(b))), b...)
}

func varbytesBytes(b []byte) int {
	if b == nil {
		return 1
	}
	return varintBytes(int64(len(b))) + len(b)
}

func varintBytes(v int64) int {
	u := uint64(v<<1) ^ uint64(v>>63)
	n := 1
	for u >= 0x80 {
		u >>= 7
		n++
	}
	return n
}
