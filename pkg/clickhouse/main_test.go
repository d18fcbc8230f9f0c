package clickhouse

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	embedded "github.com/suanpan/suanpan/services/embedded/clickhouse"
)

// childVariable is set in the child that [embedded.Start] runs, which is this binary again.
const childVariable = "SUANPAN_EMBEDDED_CHILD"

// engine is the one ClickHouse that all tests share; each has a database of its own.
var engine struct {
	once    sync.Once
	process *embedded.Process
	dir     string
	err     error
	count   atomic.Int64
}

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(runChild())
	}
	code := m.Run()
	if engine.process != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
		if err := engine.process.Stop(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
		cancel()
	}
	if err := os.RemoveAll(engine.dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func runChild() int {
	var config embedded.Config
	flags := flag.NewFlagSet("child", flag.ContinueOnError)
	config.RegisterFlags(flags)
	if err := flags.Parse(os.Args[1:]); err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if err := embedded.Serve(ctx, config, log); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// address returns where the engine is. Without the engine the test cannot run: it says so, or fails
// where all tests must run.
func address(t testing.TB) string {
	t.Helper()
	if _, err := embedded.FindLibrary(""); err != nil {
		if os.Getenv("SUANPAN_TEST_ALL") == "1" {
			t.Fatalf("SUANPAN_TEST_ALL=1 and %v", err)
		}
		t.Skipf("NOT RUN: %v", err)
	}
	engine.once.Do(func() {
		exe, err := os.Executable()
		if err != nil {
			engine.err = err
			return
		}
		if engine.dir, engine.err = os.MkdirTemp("", "suanpan-clickhouse-"); engine.err != nil {
			return
		}
		engine.process, engine.err = embedded.Start(context.Background(), exe, nil,
			embedded.Config{Listen: "127.0.0.1:0", DataDir: engine.dir}, os.Stderr)
	})
	if engine.err != nil {
		t.Fatal(engine.err)
	}
	return engine.process.Addr()
}

// open returns a store with an empty database, not migrated yet.
func open(t testing.TB) *Store {
	t.Helper()
	return openNamed(t, fmt.Sprintf("t%d", engine.count.Add(1)))
}

func openNamed(t testing.TB, database string) *Store {
	t.Helper()
	url := "http://" + address(t) + "/" + database
	s, err := Open(t.Context(), Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		drop := s.admin.Exec(ctx, "DROP DATABASE IF EXISTS "+quoteName(database)+" SYNC")
		if err := errors.Join(drop, s.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// store returns a store with an empty database and all its tables.
func store(t testing.TB) *Store {
	t.Helper()
	s := open(t)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}
