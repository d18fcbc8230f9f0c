package spool

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// FuzzScan reads any bytes as a file: it ends, takes no byte twice, and finds what was written as
// it was written.
func FuzzScan(f *testing.F) {
	good := appendEntry(nil, 7, now, &Record{Key: []byte("k"), Value: []byte("value")})
	f.Add(good)
	f.Add(append(append([]byte("junk"), good...), good[:9]...))
	f.Fuzz(func(t *testing.T, data []byte) {
		scan := scanner{file: bytes.NewReader(data)}
		var used int64
		for {
			e, err := scan.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			text := appendEntry(nil, e.seq, e.at, &e.Record)
			if !bytes.Equal(text, data[scan.began:scan.at]) {
				t.Fatalf("read at %d: %x, written: %x", scan.began, data[scan.began:scan.at], text)
			}
			used += int64(len(text))
		}
		if used+scan.skipped != int64(len(data)) {
			t.Fatalf("%d bytes of records and %d others, of %d", used, scan.skipped, len(data))
		}
	})
}
