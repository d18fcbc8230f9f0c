package clickhouse

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// abi holds the functions of libchdb's C interface that we call; the names are those of chdb.h
// without their prefix. Pointers that it returns belong to the library.
type abi struct {
	connect    func(argc int32, argv unsafe.Pointer) unsafe.Pointer
	closeConn  func(connection unsafe.Pointer)
	setSignals func(enabled int32)

	query func(connection, text unsafe.Pointer, textLen uintptr, format unsafe.Pointer,
		formatLen uintptr, names, nameLens, values, valueLens unsafe.Pointer,
		count uintptr) unsafe.Pointer
	streamQuery func(connection, text unsafe.Pointer, textLen uintptr, format unsafe.Pointer,
		formatLen uintptr, names, nameLens, values, valueLens unsafe.Pointer,
		count uintptr) unsafe.Pointer
	streamInsert func(connection, text unsafe.Pointer, textLen uintptr, format unsafe.Pointer,
		formatLen uintptr, names, nameLens, values, valueLens unsafe.Pointer,
		count uintptr) unsafe.Pointer

	fetch         func(connection, stream unsafe.Pointer) unsafe.Pointer
	cancelQuery   func(connection, stream unsafe.Pointer)
	destroyResult func(result unsafe.Pointer)
	appendInsert  func(stream, data unsafe.Pointer, length uintptr) int32
	doneInsert    func(stream unsafe.Pointer) unsafe.Pointer
	cancelInsert  func(stream unsafe.Pointer)
	insertError   func(stream unsafe.Pointer) string
	destroyInsert func(stream unsafe.Pointer)

	resultBuffer  func(result unsafe.Pointer) unsafe.Pointer
	resultLength  func(result unsafe.Pointer) uintptr
	resultError   func(result unsafe.Pointer) string
	storageRows   func(result unsafe.Pointer) uint64
	storageBytes  func(result unsafe.Pointer) uint64
	rowsWritten   func(result unsafe.Pointer) uint64
	bytesWritten  func(result unsafe.Pointer) uint64
	resultElapsed func(result unsafe.Pointer) float64
}

// loadABI maps the library and binds its functions. The library must not touch signal handlers:
// Go's runtime needs its own.
func loadABI(path string) (*abi, error) {
	library, err := openLibrary(path)
	if err != nil {
		return nil, fmt.Errorf("load libchdb: %w", err)
	}
	a := &abi{}
	for name, function := range map[string]any{
		"chdb_connect": &a.connect, "chdb_close_conn": &a.closeConn,
		"chdb_set_signal_handlers_enabled": &a.setSignals,
		"chdb_query_with_params_n":         &a.query,
		"chdb_stream_query_with_params_n":  &a.streamQuery,
		"chdb_stream_insert_with_params_n": &a.streamInsert,
		"chdb_stream_fetch_result":         &a.fetch,
		"chdb_stream_cancel_query":         &a.cancelQuery,
		"chdb_destroy_query_result":        &a.destroyResult,
		"chdb_stream_append":               &a.appendInsert,
		"chdb_stream_done":                 &a.doneInsert,
		"chdb_stream_cancel_insert":        &a.cancelInsert,
		"chdb_stream_insert_error":         &a.insertError,
		"chdb_destroy_insert_stream":       &a.destroyInsert,
		"chdb_result_buffer":               &a.resultBuffer,
		"chdb_result_length":               &a.resultLength,
		"chdb_result_error":                &a.resultError,
		"chdb_result_storage_rows_read":    &a.storageRows,
		"chdb_result_storage_bytes_read":   &a.storageBytes,
		"chdb_result_rows_written":         &a.rowsWritten,
		"chdb_result_bytes_written":        &a.bytesWritten,
		"chdb_result_elapsed":              &a.resultElapsed,
	} {
		address, err := lookUp(library, name)
		if err != nil {
			return nil, fmt.Errorf("load libchdb %s: another version or a Python wheel? %w",
				path, err)
		}
		purego.RegisterFunc(function, address)
	}
	a.setSignals(0)
	return a, nil
}

// handle is one connection to the engine. It runs one statement at a time and is not safe for
// concurrent use.
type handle struct {
	abi     *abi
	pointer unsafe.Pointer // what chdb_connect returned; it points at the connection
	key     string         // the database and settings it was opened with
	comment string         // its log_comment, which names it to KILL QUERY; empty if the user's
	dirty   bool           // the statement changed the session: not to be used again
}

// openHandle connects to the engine; the first connection of the process starts it.
func openHandle(a *abi, arguments ...string) (*handle, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	argv := make([]unsafe.Pointer, 0, len(arguments)+2)
	for _, argument := range append([]string{"clickhouse"}, arguments...) {
		text := append([]byte(argument), 0)
		pin.Pin(&text[0])
		argv = append(argv, unsafe.Pointer(&text[0]))
	}
	argv = append(argv, nil)
	pin.Pin(&argv[0])
	pointer := a.connect(int32(len(argv)-1), unsafe.Pointer(&argv[0]))
	if pointer == nil {
		return nil, fmt.Errorf("open engine: it refused %q", arguments)
	}
	return &handle{abi: a, pointer: pointer}, nil
}

func (h *handle) connection() unsafe.Pointer { return *(*unsafe.Pointer)(h.pointer) }

func (h *handle) close() { h.abi.closeConn(h.pointer) }

// parameters are the values of a statement's {name:Type} placeholders, as ClickHouse's HTTP
// interface takes them: the text of one TSV field.
type parameters map[string]string

// call runs one of the three functions that take a statement, its format and its parameters.
func (h *handle) call(function func(connection, text unsafe.Pointer, textLen uintptr,
	format unsafe.Pointer, formatLen uintptr, names, nameLens, values, valueLens unsafe.Pointer,
	count uintptr) unsafe.Pointer, text []byte, format string, params parameters,
) unsafe.Pointer {
	var pin runtime.Pinner
	defer pin.Unpin()
	address := func(b []byte) unsafe.Pointer {
		if len(b) == 0 {
			return unsafe.Pointer(&[1]byte{})
		}
		pin.Pin(&b[0])
		return unsafe.Pointer(&b[0])
	}
	var pointers [2][]unsafe.Pointer
	var lengths [2][]uintptr
	for name, value := range params {
		for i, s := range []string{name, value} {
			pointers[i] = append(pointers[i], address([]byte(s)))
			lengths[i] = append(lengths[i], uintptr(len(s)))
		}
	}
	var arrays [4]unsafe.Pointer
	if len(params) > 0 {
		for i := range 2 {
			pin.Pin(&pointers[i][0])
			pin.Pin(&lengths[i][0])
			arrays[2*i] = unsafe.Pointer(&pointers[i][0])
			arrays[2*i+1] = unsafe.Pointer(&lengths[i][0])
		}
	}
	formatBytes := []byte(format)
	result := function(h.connection(), address(text), uintptr(len(text)), address(formatBytes),
		uintptr(len(formatBytes)), arrays[0], arrays[1], arrays[2], arrays[3],
		uintptr(len(params)))
	runtime.KeepAlive(pointers)
	runtime.KeepAlive(text)
	runtime.KeepAlive(formatBytes)
	return result
}
