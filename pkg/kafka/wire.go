package kafka

import (
	"encoding/binary"
	"errors"
)

var errTruncated = errors.New("truncated message")

func appendInt16(b []byte, v int16) []byte { return binary.BigEndian.AppendUint16(b, uint16(v)) }
func appendInt32(b []byte, v int32) []byte { return binary.BigEndian.AppendUint32(b, uint32(v)) }
func appendInt64(b []byte, v int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(v)) }

func appendString(b []byte, s string) []byte {
	return append(appendInt16(b, int16(len(s))), s...)
}

// reader reads Kafka's encoding from a buffer. After the first bad read all reads return zero and
// err says why.
type reader struct {
	buf []byte
	pos int
	err error
}

// bytes returns the next n bytes, not a copy. Their capacity ends with them.
func (r *reader) bytes(n int) []byte {
	if r.err != nil || n < 0 || n > len(r.buf)-r.pos {
		r.fail()
		return nil
	}
	b := r.buf[r.pos : r.pos+n : r.pos+n]
	r.pos += n
	return b
}

func (r *reader) fail() {
	if r.err == nil {
		r.err = errTruncated
	}
}

func (r *reader) int16() int16 {
	if b := r.bytes(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (r *reader) int32() int32 {
	if b := r.bytes(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *reader) int64() int64 {
	if b := r.bytes(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// length reads a length of an array; an absent array has none. It bounds what a bad message can
// make its reader allocate: an element takes a byte at least.
func (r *reader) length() int {
	n := int(r.int32())
	if n > len(r.buf)-r.pos {
		r.fail()
		return 0
	}
	return max(n, 0)
}

func (r *reader) string() string {
	n := int(r.int16())
	if n < 0 {
		return ""
	}
	return string(r.bytes(n))
}

// varint reads a zigzag varint.
func (r *reader) varint() int64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Varint(r.buf[r.pos:])
	if n <= 0 {
		r.fail()
		return 0
	}
	r.pos += n
	return v
}

// varbytes reads bytes with a varint length; -1 is nil.
func (r *reader) varbytes() []byte {
	n := r.varint()
	if n == -1 || r.err != nil {
		return nil
	}
	if n < 0 || n > int64(len(r.buf)-r.pos) {
		r.fail()
		return nil
	}
	return r.bytes(int(n))
}
