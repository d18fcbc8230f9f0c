package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
)

// lineBytes bounds one line of the file of events.
const lineBytes = 1 << 20

// eachBatch reads the lines of a file in batches of at most `most` lines. The lines belong to visit
// for ever.
func eachBatch(ctx context.Context, path string, most int, visit func(lines [][]byte) error,
) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open events: %w", err)
	}
	defer file.Close()
	reader := bufio.NewReaderSize(file, lineBytes)
	var lines [][]byte
	var buffer []byte
	flush := func() error {
		if len(lines) == 0 {
			return ctx.Err()
		}
		err := visit(lines)
		lines, buffer = lines[:0], make([]byte, 0, cap(buffer))
		return err
	}
	for {
		line, err := reader.ReadSlice('\n')
		if line = bytes.TrimSuffix(line, []byte{'\n'}); len(line) > 0 {
			start := len(buffer)
			buffer = append(buffer, line...) // lines before it stay where they are if it moves
			lines = append(lines, buffer[start:len(buffer):len(buffer)])
		}
		if err == io.EOF {
			return flush()
		}
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
		if len(lines) == most {
			if err := flush(); err != nil {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
}

// tenantsOf finds the tenants of events as text, once each in memory.
type tenantsOf map[string]string

// of is the tenant of an event that replay made, "" of one that has none.
func (t tenantsOf) of(line []byte) string {
	_, rest, ok := bytes.Cut(line, []byte(`"tenant":"`))
	if !ok {
		return ""
	}
	name, _, _ := bytes.Cut(rest, []byte{'"'})
	known, ok := t[string(name)]
	if !ok {
		known = string(name)
		t[known] = known
	}
	return known
}
