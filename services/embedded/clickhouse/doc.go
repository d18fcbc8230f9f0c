// Package clickhouse runs the ClickHouse engine on one machine without a ClickHouse server.
//
// The engine is libchdb, ClickHouse as a shared library. It lives in a child process (the same
// binary, run again), so that a crash or an out-of-memory kill of the engine takes nothing else
// with it, and speaks ClickHouse's HTTP interface: clickhouse-go (HTTP protocol), curl and BI
// tools use it like a server. [Start] runs the child and waits until it answers; [Serve] is what
// the child runs; [FindLibrary] says where the library is.
//
// It owns the data directory while it runs. It does not own schemas, users or restarts: who
// started a child decides what its exit means.
//
// What differs from a ClickHouse server:
//   - `FORMAT Native` is written at protocol revision 0, whatever client_protocol_version asks for.
//     clickhouse-go learns so from the answer to its hello query; other clients of the Native
//     format must not send client_protocol_version.
//   - Formats that can be cut between rows (Native, TSV, CSV, JSONEachRow, RowBinary and their
//     kin) are streamed block by block. Any other (JSON, Parquet, the WithNames kinds) is built in
//     the engine's memory first, within its memory cap.
//   - INSERT ... FORMAT x streams its body; INSERT ... VALUES and any other statement must fit in
//     16 MiB. INSERT ... SELECT ... FROM input() is refused by the library.
//   - An empty answer in the Native format has no header block, so it has no column names.
//   - Bodies and answers may be packed by gzip (Content-Encoding; enable_http_compression=1) and
//     in ClickHouse's own frames of LZ4 or ZSTD (decompress=1; compress=1, always LZ4). On one
//     machine neither is worth its time.
//   - There are no sessions (session_id is accepted and ignored), no external tables, no
//     KILL QUERY by query_id, and one user.
//   - Tables of the MergeTree family fsync each inserted part unless their definition says
//     otherwise, so that an acknowledged INSERT survives a power cut, not only a kill.
package clickhouse
