package clickhouse

import (
	"errors"
	"fmt"
	"io"
	"unsafe"
)

// summary counts what a statement read and wrote.
type summary struct {
	readRows, readBytes, writtenRows, writtenBytes uint64
	elapsedNanos                                   int64
}

// result is the whole answer to a statement, in the engine's memory until free is called.
type result struct {
	abi     *abi
	pointer unsafe.Pointer
}

// bytes is a view of the engine's memory; it is gone after free.
func (r *result) bytes() []byte {
	length := r.abi.resultLength(r.pointer)
	if length == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(r.abi.resultBuffer(r.pointer)), length)
}

func (r *result) free() { r.abi.destroyResult(r.pointer) }

func (r *result) summary() summary {
	return summary{
		readRows: r.abi.storageRows(r.pointer), readBytes: r.abi.storageBytes(r.pointer),
		writtenRows: r.abi.rowsWritten(r.pointer), writtenBytes: r.abi.bytesWritten(r.pointer),
		elapsedNanos: int64(r.abi.resultElapsed(r.pointer) * 1e9),
	}
}

// query runs a statement to its end. The caller frees the result.
func (h *handle) query(text []byte, format string, params parameters) (*result, error) {
	r := &result{abi: h.abi, pointer: h.call(h.abi.query, text, format, params)}
	if message := h.abi.resultError(r.pointer); message != "" {
		r.free()
		return nil, engineError(message)
	}
	return r, nil
}

// exec runs a statement whose answer does not matter.
func (h *handle) exec(text string) error {
	r, err := h.query([]byte(text), "Null", nil)
	if err != nil {
		return err
	}
	r.free()
	return nil
}

// stream runs a SELECT and gives its answer to write, one block at a time, each a whole document
// in the format. An error of write ends the query and is returned.
func (h *handle) stream(text []byte, format string, params parameters,
	write func([]byte) error,
) error {
	stream := h.call(h.abi.streamQuery, text, format, params)
	defer h.abi.destroyResult(stream)
	if message := h.abi.resultError(stream); message != "" {
		return engineError(message)
	}
	for {
		more, err := h.fetch(stream, write)
		if err != nil {
			// Whatever ended it, the connection must not be left with a query in it.
			h.abi.cancelQuery(h.connection(), stream)
			h.dirty = true
			return err
		}
		if !more {
			return nil
		}
	}
}

func (h *handle) fetch(stream unsafe.Pointer, write func([]byte) error) (bool, error) {
	block := &result{abi: h.abi, pointer: h.abi.fetch(h.connection(), stream)}
	defer block.free()
	if message := h.abi.resultError(block.pointer); message != "" {
		return false, engineError(message)
	}
	data := block.bytes()
	if len(data) == 0 {
		return false, nil
	}
	return true, write(data)
}

// insert runs an INSERT whose rows come from data, in the given format. text has no FORMAT clause.
// The rows are committed when it returns nil. Where data ends with an error they are not, except
// for blocks that the engine has written already (it writes one about every million rows or
// 256 MiB), as with any ClickHouse server.
func (h *handle) insert(text []byte, format string, params parameters, data io.Reader,
	buffer []byte,
) (summary, error) {
	stream := h.call(h.abi.streamInsert, text, format, params)
	defer h.abi.destroyInsert(stream)
	if message := h.abi.insertError(stream); message != "" {
		return summary{}, engineError(message)
	}
	for {
		n, err := fill(data, buffer)
		if n > 0 && h.abi.appendInsert(stream, unsafe.Pointer(&buffer[0]), uintptr(n)) != 0 {
			break // the reason comes from done
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			h.abi.cancelInsert(stream)
			h.dirty = true
			return summary{}, fmt.Errorf("read rows: %w", err)
		}
	}
	r := &result{abi: h.abi, pointer: h.abi.doneInsert(stream)}
	defer r.free()
	if message := h.abi.resultError(r.pointer); message != "" {
		h.dirty = true
		return summary{}, engineError(message)
	}
	return r.summary(), nil
}

// fill reads until buffer is full or data gives an error, which is io.EOF only at data's proper
// end. io.ReadFull would report an end and a body that was cut short in the same way.
func fill(data io.Reader, buffer []byte) (int, error) {
	filled := 0
	for filled < len(buffer) {
		n, err := data.Read(buffer[filled:])
		filled += n
		if err != nil {
			return filled, err
		}
	}
	return filled, nil
}
