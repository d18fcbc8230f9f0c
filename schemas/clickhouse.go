package schemas

import "embed"

// ClickHouse holds the data definitions: clickhouse/NNNN_what.sql, to be applied in the order of
// their names, each once. Statements end in a semicolon at the end of a line, name no database and
// may be run again. A file that was released never changes: what comes after it is a new file.
//
//go:embed clickhouse/*.sql
var ClickHouse embed.FS
