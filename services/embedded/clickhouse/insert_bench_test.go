package clickhouse

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

// eventJSON makes rows of about 450 bytes that look like usage events.
func eventJSON(row int) []byte {
	at := time.Date(2025, 8, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(row) * time.Second / 40)
	start, end := at.Format(time.RFC3339), at.Add(time.Minute).Format(time.RFC3339)
	return fmt.Appendf(nil, `{"specversion":"1.0","type":"suanpan.usage.held.v1",`+
		`"source":"replay/openb","id":"openb-pod-%06d/%d","time":"%s","data":{`+
		`"tenant":"tenant-%02d","project":"ls","lease":"openb-pod-%06d",`+
		`"session":"openb-pod-%06d","session_start":"%s","purchase":"on_demand",`+
		`"region":"openb","start":"%s","end":"%s","held":{"gpu.openb":"%d.%03d",`+
		`"cpu.core":"%d","memory.gib":"%d.%03d"},"labels":{"team":"t%d"}}}`,
		row%8152, row, end, row%20, row%8152, row%8152, start, start, end, row%8, row%1000,
		row%96, row%512, row%997, row%50)
}

// encodeRows writes n rows of one String column j in a format, in blocks of 65536 rows.
func encodeRows(format string, n int) []byte {
	var out bytes.Buffer
	var length [binary.MaxVarintLen64]byte
	put := func(b []byte) {
		out.Write(length[:binary.PutUvarint(length[:], uint64(len(b)))])
		out.Write(b)
	}
	for row := range n {
		json := eventJSON(row)
		switch format {
		case "Native":
			if row%65536 == 0 {
				out.WriteByte(1)
				rows := min(65536, n-row)
				out.Write(length[:binary.PutUvarint(length[:], uint64(rows))])
				put([]byte("j"))
				put([]byte("String"))
			}
			put(json)
		case "RowBinary":
			put(json)
		case "LineAsString", "JSONAsString":
			out.Write(json)
			out.WriteByte('\n')
		case "JSONEachRow":
			fmt.Fprintf(&out, "{\"j\":%q}\n", json)
		}
	}
	return out.Bytes()
}

// BenchmarkInsert measures what the engine takes of 450-byte JSON rows, in MB/s of JSON by the
// clock and in MB per second of one core, by format, codec, piece given to the engine at once, and
// concurrent inserts. It runs the engine in this process and merges nothing.
func BenchmarkInsert(b *testing.B) {
	if _, err := FindLibrary(""); err != nil {
		b.Fatal(err)
	}
	cfg, err := Config{DataDir: b.TempDir()}.withDefaults()
	if err != nil {
		b.Fatal(err)
	}
	engine, err := openEngine(cfg, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := engine.close(b.Context()); err != nil {
			b.Log(err)
		}
	})
	run := func(format, codec string, piece, streams int) {
		name := fmt.Sprintf("%s/%s/%dKiB/%d", format, codec, piece>>10, streams)
		b.Run(name, func(b *testing.B) { benchmarkInsert(b, engine, format, codec, piece, streams) })
	}
	for _, piece := range []int{64 << 10, 1 << 20, 4 << 20} {
		run("RowBinary", "LZ4", piece, 1)
	}
	for _, codec := range []string{"LZ4", "ZSTD(1)"} {
		for _, format := range []string{"Native", "RowBinary", "LineAsString", "JSONEachRow"} {
			run(format, codec, insertBytes, 1)
			run(format, codec, insertBytes, 2)
		}
	}
}

func benchmarkInsert(b *testing.B, engine *pool, format, codec string, piece, streams int) {
	const rows = 500_000
	data := encodeRows(format, rows)
	json := int64(0)
	for row := range rows {
		json += int64(len(eventJSON(row)))
	}
	b.SetBytes(json * int64(streams))
	var spent time.Duration
	defer func() {
		b.ReportMetric(float64(json*int64(streams)*int64(b.N))/1e6/spent.Seconds(), "MB/core-s")
	}()
	for b.Loop() {
		b.StopTimer()
		execute(b, engine, "DROP TABLE IF EXISTS bench SYNC")
		execute(b, engine, "CREATE TABLE bench (j String CODEC("+codec+")) ENGINE = MergeTree "+
			"ORDER BY tuple()")
		execute(b, engine, "SYSTEM STOP MERGES bench")
		before := processorTime(b)
		b.StartTimer()
		var group sync.WaitGroup
		for range streams {
			group.Go(func() {
				h, err := engine.take(b.Context(), session{})
				if err != nil {
					b.Error(err)
					return
				}
				defer engine.give(h)
				_, err = h.insert([]byte("INSERT INTO bench"), format, nil,
					bytes.NewReader(data), make([]byte, piece))
				if err != nil {
					b.Error(err)
				}
			})
		}
		group.Wait()
		spent += processorTime(b) - before
	}
}

// processorTime is what this process has used of all cores.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func execute(b *testing.B, engine *pool, text string) {
	b.Helper()
	h, err := engine.take(b.Context(), session{})
	if err != nil {
		b.Fatal(err)
	}
	defer engine.give(h)
	if err := h.exec(text); err != nil {
		b.Fatal(err)
	}
}
