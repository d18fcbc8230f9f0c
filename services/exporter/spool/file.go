package spool

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	suffix     = ".spool"
	magic      = 0x53504c31 // "SPL1"
	headBytes  = 12         // magic, checksum, length
	fixedBytes = 26         // sequence number, times, length of the key
	chunkBytes = 64 << 10   // read at a time
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// entry is a record as it is on disk.
type entry struct {
	Record
	seq uint64
	at  time.Time
}

// appendEntry encodes a record.
func appendEntry(dst []byte, seq uint64, at time.Time, r *Record) []byte {
	head := len(dst)
	dst = binary.BigEndian.AppendUint32(dst, magic)
	dst = append(dst, 0, 0, 0, 0)
	length := fixedBytes + len(r.Key) + len(r.Value)
	dst = binary.BigEndian.AppendUint32(dst, uint32(length))
	dst = binary.BigEndian.AppendUint64(dst, seq)
	dst = binary.BigEndian.AppendUint64(dst, uint64(at.UnixNano()))
	notBefore := int64(0)
	if !r.NotBefore.IsZero() {
		notBefore = r.NotBefore.UnixNano()
	}
	dst = binary.BigEndian.AppendUint64(dst, uint64(notBefore))
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(r.Key)))
	dst = append(append(dst, r.Key...), r.Value...)
	sum := crc32.Checksum(dst[head+8:], castagnoli)
	binary.BigEndian.PutUint32(dst[head+4:], sum)
	return dst
}

// parseEntry decodes a record at the beginning of data. need is how many bytes it takes, at least
// where data ends before it does; 0: there is no record here.
func parseEntry(data []byte) (e entry, need int) {
	if len(data) < headBytes {
		return entry{}, headBytes
	}
	length := int(binary.BigEndian.Uint32(data[8:]))
	if binary.BigEndian.Uint32(data) != magic || length < fixedBytes ||
		length > fixedBytes+MaxRecordBytes {
		return entry{}, 0
	}
	need = headBytes + length
	if len(data) < need {
		return entry{}, need
	}
	body := data[headBytes:need]
	key := int(binary.BigEndian.Uint16(body[24:]))
	if crc32.Checksum(data[8:need], castagnoli) != binary.BigEndian.Uint32(data[4:]) ||
		fixedBytes+key > length {
		return entry{}, 0
	}
	e.seq = binary.BigEndian.Uint64(body)
	e.at = time.Unix(0, int64(binary.BigEndian.Uint64(body[8:])))
	if n := int64(binary.BigEndian.Uint64(body[16:])); n != 0 {
		e.NotBefore = time.Unix(0, n)
	}
	e.Key = slices.Clone(body[fixedBytes : fixedBytes+key])
	e.Value = slices.Clone(body[fixedBytes+key:])
	return e, need
}

// scanner reads the records of a file one by one, and looks for the next one where there is damage.
type scanner struct {
	file    io.ReaderAt
	at      int64 // of the next record
	began   int64 // of the last one
	skipped int64 // bytes that were no record
	buffer  []byte
	from    int64 // where in the file the buffer is
}

// next returns the next record, or io.EOF.
func (c *scanner) next() (entry, error) {
	for want := headBytes; ; {
		data, err := c.window(want)
		if err != nil {
			return entry{}, err
		}
		if len(data) == 0 {
			return entry{}, io.EOF
		}
		e, need := parseEntry(data)
		switch {
		case need > 0 && need <= len(data):
			c.began = c.at
			c.at += int64(need)
			return e, nil
		case need > len(data) && len(data) >= want && need > want:
			want = need
		default: // no record, or the file ends within it
			c.at++
			c.skipped++
			want = headBytes
		}
	}
}

// window returns what the file has at the place of the next record: at least want bytes, or all
// that is left.
func (c *scanner) window(want int) ([]byte, error) {
	if skip := c.at - c.from; skip >= 0 && skip+int64(want) <= int64(len(c.buffer)) {
		return c.buffer[skip:], nil
	}
	size := max(want, chunkBytes)
	if cap(c.buffer) < size {
		c.buffer = make([]byte, size)
	}
	n, err := c.file.ReadAt(c.buffer[:size], c.at)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	c.buffer, c.from = c.buffer[:n], c.at
	return c.buffer, nil
}

// listSegments lists the files of records in a folder, oldest first.
func listSegments(dir string) ([]segment, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var segments []segment
	for _, f := range files { // sorted by name, so by number
		number, ok := strings.CutSuffix(f.Name(), suffix)
		first, err := strconv.ParseUint(number, 10, 64)
		if !ok || err != nil {
			continue
		}
		info, err := f.Info()
		if err != nil {
			return nil, err
		}
		segments = append(segments, segment{first, info.Size()})
	}
	return segments, nil
}

// readCursor returns the number of the first record that was not sent; 0: not known, so that all
// that is there is sent again.
func readCursor(f *os.File) uint64 {
	var data [12]byte
	if _, err := f.ReadAt(data[:], 0); err != nil {
		return 0
	}
	if crc32.Checksum(data[:8], castagnoli) != binary.BigEndian.Uint32(data[8:]) {
		return 0
	}
	return binary.BigEndian.Uint64(data[:])
}

func writeCursor(f *os.File, seq uint64) error {
	var data [12]byte
	binary.BigEndian.PutUint64(data[:], seq)
	binary.BigEndian.PutUint32(data[8:], crc32.Checksum(data[:8], castagnoli))
	_, err := f.WriteAt(data[:], 0)
	return err
}

// syncDir makes the names of new files durable.
func syncDir(dir string) error {
	f, err := os.Open(filepath.Clean(dir))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
