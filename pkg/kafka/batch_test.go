package kafka

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kafkago "github.com/segmentio/kafka-go"
	"pgregory.net/rapid"

	"github.com/suanpan/suanpan/pkg/pipeline"
)

// drawRecords draws records as they would be read from partition 3 of the topic "t" at offset 7.
func drawRecords(t *rapid.T) []pipeline.Record {
	blob := rapid.OneOf(rapid.Just([]byte(nil)), rapid.SliceOfN(rapid.Byte(), 0, 300))
	records := make([]pipeline.Record, rapid.IntRange(1, 50).Draw(t, "count"))
	for i := range records {
		records[i] = pipeline.Record{
			Topic: "t", Partition: 3, Offset: 7 + int64(i), Time: time.UnixMilli(12345).UTC(),
			Key: blob.Draw(t, "key"), Value: blob.Draw(t, "value"),
		}
		for range rapid.IntRange(0, 3).Draw(t, "headers") {
			records[i].Headers = append(records[i].Headers, pipeline.Header{
				Key: rapid.String().Draw(t, "name"), Value: blob.Draw(t, "header"),
			})
		}
	}
	return records
}

// encode returns a batch of the records as a broker stores it at offset 7.
func encode(t interface{ Fatal(...any) }, records []pipeline.Record, codec compression) []byte {
	which := make([]int32, len(records))
	for i := range which {
		which[i] = int32(i)
	}
	raw, err := new(encoder).appendBatch(nil, records, which, 12345, codec)
	if err != nil {
		t.Fatal(err)
	}
	binary.BigEndian.PutUint64(raw, 7)
	return raw
}

// Property: decoding returns what was encoded, with every compression, and a batch takes no more
// than sizeOf promises.
func TestBatch_roundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := drawRecords(t)
		codec := compression(rapid.IntRange(0, 4).Draw(t, "codec"))
		raw := encode(t, records, codec)
		size := batchHeaderBytes
		for i := range records {
			size += sizeOf(&records[i])
		}
		if codec == 0 && len(raw) > size {
			t.Fatalf("batch takes %d bytes, promised were %d", len(raw), size)
		}
		f := fetched{cursor: &cursor{partition: 3, next: 7}, raw: append(raw, raw[:20]...)}
		var got []pipeline.Record
		for f.more() {
			var err error
			if got, err = f.appendRecords(got, "t"); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(records, got); diff != "" {
			t.Fatalf("records differ (-want +got):\n%s", diff)
		}
		if want := int64(7 + len(records)); f.cursor.next != want {
			t.Fatalf("cursor is at %d, want %d", f.cursor.next, want)
		}
	})
}

// Property: a batch of which any bit behind its length has changed is refused. (The broker sets
// the leader's epoch, which no checksum covers.)
func TestBatch_damageIsSeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := encode(t, drawRecords(t), 0)
		at := rapid.IntRange(batchMagicAt, len(raw)-1).Draw(t, "at")
		raw[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if _, _, err := nextBatch(raw); err == nil {
			t.Fatalf("byte %d was changed, and nobody noticed", at)
		}
	})
}

func TestFetched_skipsWhatWasReadBefore(t *testing.T) {
	records := []pipeline.Record{{Value: []byte("a")}, {Value: []byte("b")}, {Value: []byte("c")}}
	f := fetched{cursor: &cursor{next: 8}, raw: encode(t, records, 0)}
	got, err := f.appendRecords(nil, "t")
	if err != nil || len(got) != 2 || got[0].Offset != 8 || string(got[0].Value) != "b" {
		t.Fatalf("got %v, %v", got, err)
	}
}

func TestBatch_appendTimeIsTheLargest(t *testing.T) {
	raw := encode(t, []pipeline.Record{{Value: []byte("a")}}, 0)
	binary.BigEndian.PutUint16(raw[batchAttributesAt:], attributeAppendTime)
	binary.BigEndian.PutUint64(raw[35:], 99999) // what a broker does for LogAppendTime
	binary.BigEndian.PutUint32(raw[batchCRCAt:],
		crc32.Checksum(raw[batchAttributesAt:], castagnoli))
	f := fetched{cursor: &cursor{next: 7}, raw: raw}
	got, err := f.appendRecords(nil, "t")
	if err != nil || !got[0].Time.Equal(time.UnixMilli(99999)) {
		t.Fatalf("got %v, %v", got, err)
	}
}

// FuzzFetched decodes responses that no broker sent: the checksum is made right, so that what is
// behind it is reached.
func FuzzFetched(f *testing.F) {
	for codec := range compression(5) {
		f.Add(encode(f, []pipeline.Record{
			{Key: []byte("k"), Value: []byte("v"), Headers: []pipeline.Header{{Key: "h"}}},
			{Value: bytes.Repeat([]byte("long "), 100)},
		}, codec))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) > batchHeaderBytes {
			binary.BigEndian.PutUint32(raw[batchLengthAt:], uint32(len(raw)-batchLengthAt-4))
			binary.BigEndian.PutUint32(raw[batchCRCAt:],
				crc32.Checksum(raw[batchAttributesAt:], castagnoli))
		}
		at := fetched{cursor: &cursor{}, raw: raw}
		for at.more() {
			if _, err := at.appendRecords(nil, "t"); err != nil {
				return
			}
		}
		_, _ = decodeFetch(raw, "t", []*cursor{{}})
	})
}

// The hashes are those of Java's own test of murmur2.
func TestMurmur2_choosesAsJavaDoes(t *testing.T) {
	hashes := map[string]int32{
		"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536,
		"a-little-bit-longer-string": -1486304829, "abc": 479470107,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
	}
	all := make([]int, 64)
	for i := range all {
		all[i] = i
	}
	for key, hash := range hashes {
		want := int(hash&0x7fffffff) % len(all)
		if got := murmur2.Balance(kafkago.Message{Key: []byte(key)}, all...); got != want {
			t.Errorf("key %q goes to partition %d, want %d", key, got, want)
		}
	}
}

func TestTransient_tellsWhatMayPass(t *testing.T) {
	for want, errs := range map[bool][]error{
		true: {
			errors.New("connection reset"), kafkago.NotLeaderForPartition,
			kafkago.NotEnoughReplicas, kafkago.UnknownTopicOrPartition,
		},
		false: {
			kafkago.SASLAuthenticationFailed, kafkago.TopicAuthorizationFailed,
			kafkago.MessageSizeTooLarge, permanent(errors.New("connection reset")),
		},
	} {
		for _, err := range errs {
			if got := transient(err); got != want {
				t.Errorf("%v: got %v, want %v", err, got, want)
			}
		}
	}
}
