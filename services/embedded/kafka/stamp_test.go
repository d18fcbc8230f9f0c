package kafka

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// newBatch returns an uncompressed batch whose records have these times.
func newBatch(times ...int64) []byte {
	batch := kmsg.RecordBatch{
		Magic: 2, FirstTimestamp: times[0], MaxTimestamp: times[0],
		LastOffsetDelta: int32(len(times) - 1), NumRecords: int32(len(times)), ProducerID: -1,
	}
	for i, at := range times {
		batch.MaxTimestamp = max(batch.MaxTimestamp, at)
		r := kmsg.Record{
			TimestampDelta64: at - times[0], OffsetDelta: int32(i),
			Key: []byte{byte(i)}, Value: bytes.Repeat([]byte("v"), i*100),
		}
		body := r.AppendTo(nil)[1:]
		batch.Records = binary.AppendVarint(batch.Records, int64(len(body)))
		batch.Records = append(batch.Records, body...)
	}
	batch.Length = int32(batchHeader - 12 + len(batch.Records))
	return seal(batch.AppendTo(nil))
}

func seal(raw []byte) []byte {
	binary.BigEndian.PutUint32(raw[crcAt:], checksum(raw))
	return raw
}

func decode(t *testing.T, raw []byte) (kmsg.RecordBatch, []kmsg.Record) {
	t.Helper()
	var batch kmsg.RecordBatch
	if err := batch.ReadFrom(raw); err != nil {
		t.Fatal(err)
	}
	if int(batch.Length) != len(raw)-12 || uint32(batch.CRC) != checksum(raw) {
		t.Fatalf("batch of %d bytes claims %d, checksum %08x instead of %08x",
			len(raw), batch.Length+12, uint32(batch.CRC), checksum(raw))
	}
	records, err := kfake.BatchRecords(batch)
	if err != nil {
		t.Fatal(err)
	}
	return batch, records
}

func TestStampBatch_levelsAllTimes(t *testing.T) {
	for _, times := range [][]int64{{5}, {5, 5, 5}, {5, 6}, {5, 1, 1 << 40}} {
		raw, err := stampBatch(newBatch(times...), 1234)
		if err != nil {
			t.Fatal(err)
		}
		batch, records := decode(t, raw)
		if batch.FirstTimestamp != 1234 || batch.MaxTimestamp != 1234 {
			t.Errorf("%v: got times %d and %d", times, batch.FirstTimestamp, batch.MaxTimestamp)
		}
		if len(records) != len(times) {
			t.Fatalf("%v: got %d records", times, len(records))
		}
		for i, r := range records {
			if r.TimestampDelta64 != 0 || r.OffsetDelta != int32(i) ||
				!bytes.Equal(r.Key, []byte{byte(i)}) || len(r.Value) != 100*i {
				t.Errorf("%v: record %d is %+v", times, i, r)
			}
		}
	}
}

func TestStampBatch_leavesBrokenOnesAlone(t *testing.T) {
	broken := newBatch(5, 6)
	broken[len(broken)-1]++
	for _, raw := range [][]byte{nil, []byte("short"), broken} {
		before := bytes.Clone(raw)
		got, err := stampBatch(raw, 1234)
		if err != nil || !bytes.Equal(got, before) {
			t.Errorf("%q became %q, error %v", before, got, err)
		}
	}
	lying := newBatch(5, 6)
	binary.BigEndian.PutUint16(lying[attributesAt:], 3) // lz4, which it is not
	if got, err := stampBatch(seal(lying), 1234); err == nil || got != nil {
		t.Errorf("a batch that is not what it says became %q", got)
	}
}
