package clickhouse

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/suanpan/suanpan/schemas"
)

const createMigrations = `CREATE TABLE IF NOT EXISTS migrations
(
    number     UInt32,
    name       String,
    checksum   String,
    applied_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree
ORDER BY number
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Data definitions that were applied'`

// migration is one file of data definitions.
type migration struct {
	number     uint32
	name       string
	checksum   string
	statements []string
}

// Migrate makes the database and applies the data definitions that it lacks, in their order. It may
// be run again and by several processes at once: each statement may be. It fails where a definition
// was changed after it was applied, or where the database is newer than this program.
func (s *Store) Migrate(ctx context.Context) error {
	all, err := migrations(schemas.ClickHouse)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	if err := s.admin.Exec(ctx, "CREATE DATABASE IF NOT EXISTS "+quoteName(s.database)); err != nil {
		return fmt.Errorf("create database %s: %w", s.database, err)
	}
	return s.migrate(ctx, all)
}

func (s *Store) migrate(ctx context.Context, all []migration) error {
	if err := s.conn.Exec(ctx, createMigrations); err != nil {
		return fmt.Errorf("create table of migrations: %w", err)
	}
	applied, err := s.applied(ctx)
	if err != nil {
		return fmt.Errorf("read applied migrations: %w", err)
	}
	for _, m := range all {
		checksum, done := applied[m.number]
		delete(applied, m.number)
		switch {
		case done && checksum == m.checksum:
		case done:
			return fmt.Errorf("apply migration %s: it was changed after it was applied", m.name)
		default:
			if err := s.apply(ctx, m); err != nil {
				return fmt.Errorf("apply migration %s: %w", m.name, err)
			}
		}
	}
	for number := range applied {
		return fmt.Errorf("check migrations: the database has number %d, which this program does "+
			"not know: it is older than the database", number)
	}
	return nil
}

func (s *Store) applied(ctx context.Context) (map[uint32]string, error) {
	applied := make(map[uint32]string)
	err := s.each(ctx, "SELECT number, checksum FROM migrations FINAL", func(row scanner) error {
		var number uint32
		var checksum string
		err := row.Scan(&number, &checksum)
		applied[number] = checksum
		return err
	})
	return applied, err
}

func (s *Store) apply(ctx context.Context, m migration) error {
	for i, statement := range m.statements {
		if err := s.conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("statement %d: %w", i+1, err)
		}
	}
	return s.insert(ctx, "migrations", 1,
		field{"number", "UInt32", []uint32{m.number}},
		field{"name", "String", []string{m.name}},
		field{"checksum", "String", []string{m.checksum}})
}

// migrations reads files clickhouse/NNNN_what.sql, which are numbered from 1 without gaps.
func migrations(from fs.FS) ([]migration, error) {
	files, err := fs.Glob(from, "clickhouse/*.sql")
	if err != nil {
		return nil, err
	}
	all := make([]migration, 0, len(files))
	for i, file := range files {
		text, err := fs.ReadFile(from, file)
		if err != nil {
			return nil, err
		}
		name := path.Base(file)
		digits, _, _ := strings.Cut(name, "_")
		number, err := strconv.ParseUint(digits, 10, 32)
		if err != nil || number != uint64(i+1) {
			return nil, fmt.Errorf("%s is not number %04d", name, i+1)
		}
		sum := sha256.Sum256(text)
		all = append(all, migration{
			number: uint32(number), name: strings.TrimSuffix(name, ".sql"),
			checksum: hex.EncodeToString(sum[:]), statements: statements(string(text)),
		})
	}
	return all, nil
}

// statements splits a file; a statement ends in a semicolon at the end of a line.
func statements(text string) []string {
	var out []string
	for _, statement := range strings.SplitAfter(text, ";\n") {
		if statement = strings.TrimSuffix(strings.TrimSpace(statement), ";"); statement != "" {
			out = append(out, statement)
		}
	}
	return out
}

// quoteName returns a database's name as an identifier.
func quoteName(name string) string {
	return "`" + strings.NewReplacer("\\", "\\\\", "`", "\\`").Replace(name) + "`"
}
