package clickhouse

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// envChild tells Serve that a parent holds its standard input and reads its standard output.
	envChild = "SUANPAN_EMBEDDED_CHILD"
	// readyPrefix begins the line that tells the parent the address.
	readyPrefix = "listening "
	// drainTime is what running statements get to end by themselves, stopTime after they were
	// killed.
	drainTime = 10 * time.Second
	stopTime  = 10 * time.Second
)

// Serve loads the library, opens the data directory and answers ClickHouse's HTTP interface until
// ctx ends. It then lets running statements end, kills SELECTs that do not, closes the engine and
// returns nil; an error means that statements were cut off, as by a kill, which the engine
// survives. It can be called once in a process, as the engine starts once.
//
// In a child of [Start] it also ends when its parent does.
func Serve(ctx context.Context, cfg Config, log *slog.Logger) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	if cfg.DataDir, err = filepath.Abs(cfg.DataDir); err != nil {
		return fmt.Errorf("find data directory: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if os.Getenv(envChild) != "" {
		// The parent never writes; its end is the end of this input, however it came. The
		// goroutine ends with the process at the latest.
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
	}
	engine, err := openEngine(cfg, log)
	if err != nil {
		return err
	}
	version, err := engine.version()
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	log.Info("embedded ClickHouse listens", "address", listener.Addr().String(),
		"version", version, "data", cfg.DataDir)
	if os.Getenv(envChild) != "" {
		fmt.Fprintln(os.Stdout, readyPrefix+listener.Addr().String())
	}
	// Statements outlive ctx by drainTime.
	statements, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	server := newServer(newFront(cfg, engine, version, log), log)
	server.BaseContext = func(net.Listener) context.Context { return statements }
	failed := make(chan error, 1)
	go func() {
		if cfg.TLSCert != "" {
			failed <- server.ServeTLS(listener, cfg.TLSCert, cfg.TLSKey)
			return
		}
		failed <- server.Serve(listener)
	}()
	select {
	case err = <-failed:
		err = fmt.Errorf("serve HTTP: %w", err)
	case <-ctx.Done():
	}
	return errors.Join(err, shutDown(ctx, server, engine, kill, log))
}

// shutDown ends the server, then the engine.
func shutDown(ctx context.Context, server *http.Server, engine *pool, kill func(),
	log *slog.Logger,
) error {
	ctx = context.WithoutCancel(ctx)
	drain, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	if err := server.Shutdown(drain); err != nil {
		log.Warn("statements still run, killing them")
		kill()
		stop, cancel := context.WithTimeout(ctx, stopTime)
		defer cancel()
		if err := server.Shutdown(stop); err != nil {
			_ = server.Close() // it cuts bodies, which ends their inserts
		}
	}
	stop, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	if err := engine.close(stop); err != nil {
		return err
	}
	log.Info("embedded ClickHouse stopped")
	return nil
}

// openEngine starts the engine in cfg's data directory.
func openEngine(cfg Config, log *slog.Logger) (*pool, error) {
	library, err := FindLibrary(cfg.Library)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	configFile := filepath.Join(cfg.DataDir, "suanpan-config.xml")
	if err := os.WriteFile(configFile, engineConfig(cfg), 0o600); err != nil {
		return nil, fmt.Errorf("write engine configuration: %w", err)
	}
	a, err := loadABI(library)
	if err != nil {
		return nil, err
	}
	return openPool(a, cfg, configFile, log)
}

// engineConfig is the engine's configuration file.
func engineConfig(cfg Config) []byte {
	type element struct {
		XMLName xml.Name
		Value   any `xml:",chardata"`
	}
	of := func(name string, value any) element {
		return element{XMLName: xml.Name{Local: name}, Value: value}
	}
	cache := cfg.MemoryBytes / 16
	document := struct {
		XMLName  xml.Name `xml:"clickhouse"`
		Elements []any
	}{Elements: []any{
		of("max_server_memory_usage", cfg.MemoryBytes),
		of("mark_cache_size", cache), of("uncompressed_cache_size", 0),
		of("index_mark_cache_size", cache/4), of("index_uncompressed_cache_size", 0),
		of("primary_index_cache_size", cache), of("mmap_cache_size", 0),
		of("query_condition_cache_size", cache/4),
		// Acknowledged means on the disk: kfake's log and these tables promise the same.
		struct {
			XMLName   xml.Name `xml:"merge_tree"`
			Insert    int      `xml:"fsync_after_insert"`
			Directory int      `xml:"fsync_part_directory"`
		}{Insert: 1, Directory: 1},
	}}
	text, err := xml.MarshalIndent(document, "", "  ")
	if err != nil {
		panic("BUG: " + err.Error()) // fixed types always marshal
	}
	return append(text, '\n')
}

// version asks the engine for its version.
func (p *pool) version() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, err := p.control.query([]byte("SELECT version()"), "TSV", nil)
	if err != nil {
		return "", fmt.Errorf("ask engine for its version: %w", err)
	}
	defer r.free()
	return strings.TrimSpace(string(r.bytes())), nil
}
