// Package clickhouse keeps records, rows and settlements in ClickHouse, and reads them back for
// the pipeline and the command line. Domain values come in and go out; that tables hold several
// states of a row until they merge, and how a value looks in a column, stays in here. It rates
// nothing and settles nothing. It speaks ClickHouse's own protocol or HTTP, to a server or to the
// engine that is embedded on one machine.
package clickhouse

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"

	"github.com/suanpan/suanpan/pkg/notify"
	"github.com/suanpan/suanpan/pkg/pipeline"
)

var (
	_ pipeline.Archive     = (*Store)(nil)
	_ pipeline.Rows        = (*Store)(nil)
	_ pipeline.Settlements = (*Store)(nil)
	_ pipeline.Bills       = (*Store)(nil)
	_ pipeline.Evidence    = (*Store)(nil)
	_ pipeline.Rerater     = (*Store)(nil)
	_ pipeline.Spending    = (*Store)(nil)
	_ pipeline.Watched     = (*Store)(nil)
	_ pipeline.Alerts      = (*Store)(nil)
	_ notify.Store         = (*Deliveries)(nil)
)

// DefaultDatabase is used where [Config.URL] names none.
const DefaultDatabase = "suanpan"

// Config says where ClickHouse is.
type Config struct {
	// URL is http(s)://user@host:port/database, or clickhouse:// for ClickHouse's own protocol,
	// with the driver's parameters: secure=true, compress=lz4, hosts=a:9000,b:9000 and others.
	URL string
	// Password, where it is not in the URL.
	Password string
	// TLS is used with https:// and with secure=true.
	TLS TLS
}

// TLS says whom to trust. The server's certificate is always verified.
type TLS struct {
	CA   string // PEM file with the authorities to trust; default: those of the system
	Cert string // PEM file with the client's certificate, optional, together with Key
	Key  string // PEM file with its private key
}

// Limits of one statement.
const (
	readTimeout    = 5 * time.Minute
	maxConnections = 8
	maxQueryBytes  = 1 << 20 // of a statement's text
)

// Store is a database in ClickHouse. It may be used concurrently.
type Store struct {
	conn     driver.Conn
	admin    driver.Conn // not in the database, which may not exist yet
	bulk     *stream     // nil where all goes through the driver
	database string
}

// Open connects to ClickHouse and makes sure that it answers. The database need not exist; see
// [Store.Migrate].
func Open(ctx context.Context, config Config) (*Store, error) {
	options, err := config.options()
	if err != nil {
		return nil, fmt.Errorf("open ClickHouse: %w", err)
	}
	s := &Store{database: options.Auth.Database, bulk: newStream(options)}
	if s.conn, err = driver.Open(options); err != nil {
		return nil, fmt.Errorf("open ClickHouse: %w", err)
	}
	elsewhere := *options
	elsewhere.Auth.Database = "default"
	elsewhere.MaxOpenConns, elsewhere.MaxIdleConns = 1, 1
	if s.admin, err = driver.Open(&elsewhere); err != nil {
		return nil, errors.Join(fmt.Errorf("open ClickHouse: %w", err), s.conn.Close())
	}
	if err := s.admin.Ping(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open ClickHouse: %w", err), s.Close())
	}
	return s, nil
}

// Close ends all connections.
func (s *Store) Close() error {
	if s.bulk != nil {
		s.bulk.close()
	}
	return errors.Join(s.conn.Close(), s.admin.Close())
}

// Ping asks ClickHouse whether it is there.
func (s *Store) Ping(ctx context.Context) error { return s.conn.Ping(ctx) }

func (c Config) options() (*driver.Options, error) {
	scheme, _, _ := strings.Cut(c.URL, "://")
	dsn := c.URL
	switch scheme {
	case "http", "clickhouse", "tcp":
	case "https": // the driver wants it said twice
		if !strings.Contains(dsn, "?") {
			dsn += "?"
		}
		dsn += "&secure=true"
	default:
		return nil, errors.New("the URL does not begin with http://, https:// or clickhouse://")
	}
	options, err := driver.ParseDSN(dsn)
	if err != nil {
		return nil, err // it hides the password
	}
	if c.Password != "" {
		options.Auth.Password = c.Password
	}
	if options.Auth.Password != "" && options.Auth.Username == "" {
		options.Auth.Username = "default"
	}
	if options.Auth.Database == "" {
		options.Auth.Database = DefaultDatabase
	}
	if options.TLS, err = c.TLS.load(options.TLS); err != nil {
		return nil, err
	}
	options.ReadTimeout = readTimeout
	options.MaxOpenConns, options.MaxIdleConns = maxConnections, maxConnections
	for name, value := range map[string]any{
		"async_insert":   0, // an acknowledged row is in a part
		"max_query_size": maxQueryBytes + 64<<10,
		// A row's hour gives its partition, so no two partitions have states of the same row.
		"do_not_merge_across_partitions_select_final": 1,
		"join_use_nulls":     0,
		"optimize_on_insert": 0, // rows of one insert are of different keys
		"insert_deduplicate": 0, // tables take repeats; a block that was cleaned up must land
	} {
		if _, given := options.Settings[name]; !given {
			options.Settings[name] = value
		}
	}
	return options, nil
}

func (t TLS) load(base *tls.Config) (*tls.Config, error) {
	if base == nil {
		if t != (TLS{}) {
			return nil, errors.New("load TLS: files are given but the URL is neither https:// " +
				"nor has it secure=true")
		}
		return nil, nil
	}
	config := base.Clone()
	config.MinVersion, config.InsecureSkipVerify = tls.VersionTLS12, false
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("load TLS authorities: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("load TLS authorities: no certificate in %s", t.CA)
		}
	}
	if t.Cert != "" || t.Key != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("load TLS client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// field is a column of an insert: the type in which it travels over HTTP, where ClickHouse casts it
// to the table's own, and its values, a slice.
type field struct {
	name   string
	wire   string
	values any
}

// insert writes rows, durably, in one statement.
func (s *Store) insert(ctx context.Context, table string, rows int, fields ...field) error {
	if rows == 0 {
		return nil
	}
	types := make([]driver.ColumnNameAndType, len(fields))
	for i, f := range fields {
		types[i] = driver.ColumnNameAndType{Name: f.name, Type: f.wire}
	}
	ctx = driver.Context(ctx, driver.WithColumnNamesAndTypes(types))
	batch, err := s.conn.PrepareBatch(ctx, insertStatement(table, fields))
	if err != nil {
		return fmt.Errorf("insert into %s: %w", table, err)
	}
	defer func() { _ = batch.Close() }() // after Send it does nothing
	for i, f := range fields {
		if err := batch.Column(i).Append(f.values); err != nil {
			return fmt.Errorf("insert into %s: column %s: %w", table, f.name, err)
		}
	}
	// Over HTTP the driver sends nothing, and reports no error, when columns differ in length.
	if err := sameLength(batch.Columns(), rows); err != nil {
		return fmt.Errorf("insert into %s: %w", table, err)
	}
	if err := batch.Send(); err != nil {
		return fmt.Errorf("insert into %s: %w", table, err)
	}
	return nil
}

// insertBulk is insert for the tables of most rows, whose columns [block] can write.
func (s *Store) insertBulk(ctx context.Context, table string, rows int, fields ...field) error {
	if s.bulk == nil || rows == 0 {
		return s.insert(ctx, table, rows, fields...)
	}
	for _, f := range fields {
		if n := reflect.ValueOf(f.values).Len(); n != rows {
			panic(fmt.Sprintf("BUG: column %s has %d values, not %d", f.name, n, rows))
		}
	}
	if err := s.bulk.insert(ctx, insertStatement(table, fields), rows, fields); err != nil {
		return fmt.Errorf("insert into %s: %w", table, err)
	}
	return nil
}

func insertStatement(table string, fields []field) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return "INSERT INTO " + table + " (" + strings.Join(names, ", ") + ")"
}

func sameLength(columns []column.Interface, rows int) error {
	for _, c := range columns {
		if c.Rows() != rows {
			return fmt.Errorf("column %s has %d values, not %d", c.Name(), c.Rows(), rows)
		}
	}
	return nil
}

// each runs a query and calls scan for every row of its result.
func (s *Store) each(ctx context.Context, query string, scan func(row scanner) error) error {
	rows, err := s.conn.Query(ctx, query)
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := scan(rows); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// scanner is one row of a result.
type scanner interface{ Scan(dest ...any) error }
