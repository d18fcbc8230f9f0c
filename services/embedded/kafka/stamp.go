package kafka

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Positions in a record batch.
const (
	crcAt        = 17
	attributesAt = 21
	firstTimeAt  = 27
	maxTimeAt    = 35
	batchHeader  = 61
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// stamper makes message.timestamp.type=LogAppendTime work, which kfake accepts and ignores: before
// a batch for such a topic is appended, it gets the time of the broker. The batch does not get
// Kafka's attribute bit for that: kfake would then store a batch whose checksum is wrong.
type stamper struct {
	topic   func(name string) *kfake.TopicInfo
	topicID func(id [16]byte) *kfake.TopicInfo
	log     *slog.Logger
	last    int64 // milliseconds; the time never goes back
}

// control is called before every produce request, for one at a time.
func (s *stamper) control(request kmsg.Request) (kmsg.Response, error, bool) {
	produce := request.(*kmsg.ProduceRequest)
	s.last = max(s.last, time.Now().UnixMilli())
	for i := range produce.Topics {
		topic := &produce.Topics[i]
		if !s.stamps(topic) {
			continue
		}
		for j := range topic.Partitions {
			p := &topic.Partitions[j]
			records, err := stampBatch(p.Records, s.last)
			if err != nil {
				s.log.Warn("record batch refused", "topic", topic.Topic, "error", err)
			}
			p.Records = records // none after an error, which the broker refuses as corrupt
		}
	}
	return nil, nil, false
}

// stamps reports whether a topic asks for LogAppendTime.
func (s *stamper) stamps(topic *kmsg.ProduceRequestTopic) bool {
	info := s.topic(topic.Topic)
	if topic.Topic == "" { // since version 13 a topic is given by its ID
		info = s.topicID(topic.TopicID)
	}
	if info == nil {
		return false
	}
	kind := info.Configs["message.timestamp.type"]
	return kind != nil && *kind == "LogAppendTime"
}

// stampBatch gives all records of a batch the time now, in place where that is possible. A batch
// that is not intact stays as it is, for the broker to refuse.
func stampBatch(raw []byte, now int64) ([]byte, error) {
	if len(raw) < batchHeader {
		return raw, nil
	}
	if checksum(raw) != binary.BigEndian.Uint32(raw[crcAt:]) {
		return raw, nil
	}
	first := binary.BigEndian.Uint64(raw[firstTimeAt:])
	if first != binary.BigEndian.Uint64(raw[maxTimeAt:]) {
		var err error
		if raw, err = levelBatch(raw); err != nil {
			return nil, err
		}
	}
	binary.BigEndian.PutUint64(raw[firstTimeAt:], uint64(now))
	binary.BigEndian.PutUint64(raw[maxTimeAt:], uint64(now))
	binary.BigEndian.PutUint32(raw[crcAt:], checksum(raw))
	return raw, nil
}

func checksum(raw []byte) uint32 { return crc32.Checksum(raw[attributesAt:], castagnoli) }

// levelBatch encodes a batch anew, uncompressed, with all its records at the same time.
func levelBatch(raw []byte) ([]byte, error) {
	var batch kmsg.RecordBatch
	if err := batch.ReadFrom(raw); err != nil {
		return nil, fmt.Errorf("decode record batch: %w", err)
	}
	records, err := kfake.BatchRecords(batch)
	if err != nil {
		return nil, fmt.Errorf("decode record batch: %w", err)
	}
	batch.Records = nil
	for _, r := range records {
		r.TimestampDelta, r.TimestampDelta64 = 0, 0
		r.Length = 0
		body := r.AppendTo(nil)[1:] // without the length, which is 0 here, so one byte
		batch.Records = binary.AppendVarint(batch.Records, int64(len(body)))
		batch.Records = append(batch.Records, body...)
	}
	batch.Attributes &^= 0x07
	batch.Length = int32(batchHeader - 12 + len(batch.Records))
	return batch.AppendTo(nil), nil
}
