// Package daemon is what every long-running service needs around its loops: settings from flags,
// environment and file, logs, an admin server, supervision and progress. Tasks come in; restarts,
// an orderly stop and one error go out. It hides signals, timers and the order of things. It never
// looks inside a task, keeps no global state, and prints no secret.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// restartMin and restartMax bound the pause before a failed task is started again.
	restartMin = 200 * time.Millisecond
	restartMax = 30 * time.Second
	// healthyRun is how long a task must run for its earlier failures to be forgotten.
	healthyRun = time.Minute
	// stopTimeout bounds the stop of all tasks together: below the 30 s that orchestrators
	// wait before they kill.
	stopTimeout = 25 * time.Second
)

// Task is a named loop of a service.
type Task struct {
	// Name says what the loop does, in one word: it labels logs and metrics.
	Name string
	// Run works until ctx ends. A nil error means that the task is done for good; any other is
	// logged, and Run is called again after a pause that doubles from 0.2 s to 30 s, less up to
	// half at random, and starts over once the task has run for a minute. A panic is logged
	// and crashes the process: what the loop held in memory can no longer be trusted.
	Run func(ctx context.Context) error
	// Fatal reports whether no restart can cure the error, so that everything must stop and
	// Run of the package return it. Nil means never.
	Fatal func(error) bool
}

// Run starts the tasks, in order, and supervises them until all are done, ctx ends, a fatal error
// occurs, or the process gets SIGTERM or SIGINT. Then it stops the tasks in reverse order, each one
// after those that were started later have ended. A second signal kills the process at once.
//
// It counts restarts in suanpan_loop_restarts_total{loop} of reg (which may be nil). The error is
// nil after an orderly stop; otherwise it names the fatal task, or those that did not stop within
// 25 s and still run.
func Run(
	ctx context.Context, log *slog.Logger, reg prometheus.Registerer, tasks []Task,
) error {
	inner, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	defer cancel()
	defer close(ended)
	go func() {
		select {
		case s := <-signals:
			log.Info("stopping; a second signal kills", "signal", s.String())
		case <-ctx.Done(): // perhaps by a signal that the caller has caught
			log.Info("stopping; a signal kills")
		case <-ended:
			return
		}
		// From here on the signals have their default effect, whoever else caught them.
		signal.Reset(syscall.SIGTERM, syscall.SIGINT)
		cancel()
	}()
	return supervise(inner, log, reg, tasks)
}

// running is a task that has been started.
type running struct {
	Task
	cancel   context.CancelFunc
	ended    chan struct{} // closed when the task's goroutine is about to end
	restarts prometheus.Counter
}

// supervise is Run without the signals.
func supervise(
	ctx context.Context, log *slog.Logger, reg prometheus.Registerer, tasks []Task,
) error {
	restarts, err := restartCounter(reg)
	if err != nil {
		return err
	}
	fatal := make(chan error, len(tasks)) // room for all: no task waits to report
	started := make([]*running, len(tasks))
	for i, task := range tasks {
		r := &running{Task: task, ended: make(chan struct{})}
		r.restarts = restarts.WithLabelValues(task.Name)
		var own context.Context
		// A task outlives ctx until its turn to stop comes.
		own, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
		defer r.cancel()
		started[i] = r
		go r.loop(own, log.With("loop", task.Name), fatal)
	}
	err = wait(ctx, started, fatal)
	return errors.Join(err, stop(log, started))
}

// wait returns when ctx ends, all tasks have ended, or one reports a fatal error.
func wait(ctx context.Context, started []*running, fatal <-chan error) error {
	for _, r := range started {
		select {
		case <-r.ended:
		case err := <-fatal:
			return err
		case <-ctx.Done():
			return nil
		}
	}
	select {
	case err := <-fatal: // of a task that ended while an earlier one was waited for
		return err
	default:
		return nil
	}
}

// stop ends the tasks in reverse order. When the time is up it cancels the rest all at once.
func stop(log *slog.Logger, started []*running) error {
	timeout := time.NewTimer(stopTimeout)
	defer timeout.Stop()
	for i := len(started) - 1; i >= 0; i-- {
		started[i].cancel()
		select {
		case <-started[i].ended:
			log.Debug("loop has ended", "loop", started[i].Name)
		case <-timeout.C:
			var names []string
			for _, r := range started[:i+1] {
				r.cancel()
				names = append(names, r.Name)
			}
			return fmt.Errorf("stop %s: still running after %s",
				strings.Join(names, ", "), stopTimeout)
		}
	}
	return nil
}

// loop runs the task and then says that it has ended. After a panic it never says so: the process
// must not end in order before the panic has ended it.
func (r *running) loop(ctx context.Context, log *slog.Logger, fatal chan<- error) {
	defer crash(log, r.Name)
	r.repeat(ctx, log, fatal)
	close(r.ended)
}

// repeat runs the task until it is done, fails for good, or ctx ends.
func (r *running) repeat(ctx context.Context, log *slog.Logger, fatal chan<- error) {
	pause := Backoff{Min: restartMin, Max: restartMax}
	for {
		began := time.Now()
		err := r.Run(ctx)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			if !errors.Is(err, context.Canceled) {
				log.Warn("loop ended with an error while stopping", "error", err)
			}
			return
		}
		if r.Fatal != nil && r.Fatal(err) {
			fatal <- fmt.Errorf("run %s: %w", r.Name, err)
			return
		}
		if time.Since(began) >= healthyRun {
			pause.Reset()
		}
		delay := pause.Next()
		log.Error("loop failed, starting it again", "error", err, "pause", delay)
		r.restarts.Inc()
		if !sleep(ctx, delay) {
			return
		}
	}
}

// crash lets a panic end the process, after saying which loop it comes from. A message that
// starts with BUG: is a broken invariant of ours.
func crash(log *slog.Logger, name string) {
	v := recover()
	if v == nil {
		return
	}
	what := "a loop panicked"
	if text := fmt.Sprint(v); strings.HasPrefix(text, "BUG:") {
		what = "a loop found a bug in this program; please report it with this log"
	}
	log.Error(what, "loop", name, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	panic(v)
}

// restartCounter registers the metric that supervise counts in. Two runs may share a registry.
func restartCounter(reg prometheus.Registerer) (*prometheus.CounterVec, error) {
	restarts := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "suanpan_loop_restarts_total",
		Help: "Restarts of a loop after an error.",
	}, []string{"loop"})
	if reg == nil {
		return restarts, nil
	}
	err := reg.Register(restarts)
	var registered prometheus.AlreadyRegisteredError
	if errors.As(err, &registered) {
		if earlier, ok := registered.ExistingCollector.(*prometheus.CounterVec); ok {
			return earlier, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("register loop restarts: %w", err)
	}
	return restarts, nil
}
