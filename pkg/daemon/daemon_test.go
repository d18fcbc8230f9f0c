package daemon

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// quiet returns a logger that keeps nothing.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// waits is a task that ends when its context does.
func waits(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// restartsOf reads the restart counter of a loop.
func restartsOf(t *testing.T, reg *prometheus.Registry, loop string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "suanpan_loop_restarts_total" &&
				m.GetLabel()[0].GetValue() == loop {
				return m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("no restart counter of loop %s", loop)
	return 0
}

func TestSupervise_restartsFailedTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		runs := 0
		err := supervise(t.Context(), quiet(), reg, []Task{{
			Name: "flaky",
			Run: func(context.Context) error {
				if runs++; runs < 4 {
					return errors.New("not yet")
				}
				return nil
			},
		}})
		if err != nil || runs != 4 {
			t.Errorf("got %v after %d runs, want nil after 4", err, runs)
		}
		if got := restartsOf(t, reg, "flaky"); got != 3 {
			t.Errorf("counted %v restarts, want 3", got)
		}
	})
}

func TestSupervise_pausesGrowAndResetAfterHealthyMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pauses []time.Duration
		var ended time.Time
		// It fails at once 12 times, then once after a healthy minute, then at once.
		err := supervise(t.Context(), quiet(), nil, []Task{{
			Name: "flaky",
			Run: func(ctx context.Context) error {
				if !ended.IsZero() {
					pauses = append(pauses, time.Since(ended))
				}
				if len(pauses) == 12 {
					sleep(ctx, healthyRun)
				}
				if len(pauses) == 13 {
					return nil
				}
				ended = time.Now()
				return errors.New("down")
			},
		}})
		if err != nil {
			t.Fatal(err)
		}
		// The pause before the 13th run follows 12 failures; the reset one comes later.
		if longest := pauses[11]; longest < restartMax/2 || longest > restartMax {
			t.Errorf("pause after many failures: %s, want %s to %s",
				longest, restartMax/2, restartMax)
		}
		// ended is set after the healthy minute, so this is the pause alone.
		if last := pauses[12]; last < restartMin/2 || last > restartMin {
			t.Errorf("pause after a healthy minute: %s, want %s to %s",
				last, restartMin/2, restartMin)
		}
	})
}

func TestSupervise_stopsInReverseOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var order []string
		slow := func(name string) Task {
			return Task{Name: name, Run: func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(time.Second) // a stop takes its time; the next one must wait for it
				order = append(order, name)
				return nil
			}}
		}
		go func() {
			time.Sleep(time.Minute)
			cancel()
		}()
		err := supervise(ctx, quiet(), nil, []Task{slow("a"), slow("b"), slow("c")})
		if err != nil {
			t.Errorf("an orderly stop returned %v", err)
		}
		if diff := cmp.Diff([]string{"c", "b", "a"}, order); diff != "" {
			t.Errorf("order of the stop (-want +got):\n%s", diff)
		}
	})
}

func TestSupervise_stopsDuringPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		began := time.Now()
		err := supervise(ctx, quiet(), nil, []Task{{
			Name: "down", Run: func(context.Context) error { return errors.New("down") },
		}})
		if err != nil || time.Since(began) != 10*time.Millisecond {
			t.Errorf("stopped after %s with %v", time.Since(began), err)
		}
	})
}

func TestSupervise_namesTasksThatDoNotStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		stuck := func(context.Context) error {
			time.Sleep(time.Hour)
			return nil
		}
		began := time.Now()
		err := supervise(ctx, quiet(), nil, []Task{
			{Name: "first", Run: waits}, {Name: "stuck", Run: stuck}, {Name: "last", Run: waits},
		})
		if err == nil || !strings.Contains(err.Error(), "stop first, stuck: still running") {
			t.Errorf("got error %v, want one that names first and stuck", err)
		}
		if took := time.Since(began); took != stopTimeout {
			t.Errorf("gave up after %s, want %s", took, stopTimeout)
		}
		time.Sleep(time.Hour) // lets the stuck task end, or the bubble would
	})
}

func TestSupervise_fatalErrorStopsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("offset beyond the end")
		var stopped atomic.Bool
		err := supervise(t.Context(), quiet(), nil, []Task{
			{Name: "other", Run: func(ctx context.Context) error {
				<-ctx.Done()
				stopped.Store(true)
				return nil
			}},
			{
				Name:  "reader",
				Run:   func(context.Context) error { return gone },
				Fatal: func(err error) bool { return errors.Is(err, gone) },
			},
		})
		if !errors.Is(err, gone) || !strings.Contains(err.Error(), "run reader") {
			t.Errorf("got error %v, want the reader's", err)
		}
		if !stopped.Load() {
			t.Error("the other task still runs")
		}
	})
}

func TestSupervise_twoRunsShareARegistry(t *testing.T) {
	reg := prometheus.NewRegistry()
	done := Task{Name: "once", Run: func(context.Context) error { return nil }}
	for range 2 {
		if err := supervise(t.Context(), quiet(), reg, []Task{done}); err != nil {
			t.Fatal(err)
		}
	}
}

// childEnv names what a child process of these tests does instead of testing.
const childEnv = "DAEMON_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childEnv) {
	case "":
		os.Exit(m.Run())
	case "bug":
		child(func(context.Context) error { panic("BUG: seconds are negative") })
	case "polite":
		child(waits)
	case "stubborn":
		child(func(context.Context) error { select {} })
	}
}

// child runs one loop under the name "rater" until it ends.
func child(run func(context.Context) error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	task := Task{Name: "rater", Run: func(ctx context.Context) error {
		_, _ = os.Stdout.WriteString("started\n")
		return run(ctx)
	}}
	// Programs catch signals for their whole life; Run must cope with that.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := Run(ctx, log, nil, []Task{task}); err != nil {
		log.Error("ended", "error", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// startChild starts this test binary as the named child and waits until its loop runs.
func startChild(t *testing.T, what string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+what)
	stderr := &bytes.Buffer{}
	cmd.Stderr = stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := stdout.Read(make([]byte, 16)); err != nil {
		t.Fatalf("child %s did not start: %v\n%s", what, err, stderr)
	}
	return cmd, stderr
}

func TestRun_panicCrashesAndNamesTheLoop(t *testing.T) {
	cmd, stderr := startChild(t, "bug")
	err := cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 {
		t.Errorf("ended with %v, want exit code 2", err)
	}
	for _, want := range []string{
		"a loop found a bug", "loop=rater", "panic: BUG: seconds are negative",
	} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("stderr lacks %q:\n%s", want, stderr)
		}
	}
}

func TestRun_firstSignalStops(t *testing.T) {
	cmd, stderr := startChild(t, "polite")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("ended with %v\n%s", err, stderr)
	}
}

func TestRun_secondSignalKills(t *testing.T) {
	cmd, stderr := startChild(t, "stubborn")
	began := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var err error
	for waiting := true; waiting; { // the first is handled at some moment, a later one kills
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Log(err) // it has ended
		}
		select {
		case err = <-ended:
			waiting = false
		case <-time.After(50 * time.Millisecond):
		}
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGINT {
		t.Errorf("ended with %v, want a death by SIGINT\n%s", err, stderr)
	}
	if took := time.Since(began); took > stopTimeout/2 {
		t.Errorf("died after %s: not by the second signal", took)
	}
}
