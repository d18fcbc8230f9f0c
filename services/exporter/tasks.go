package exporter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/suanpan/suanpan/pkg/daemon"
	"github.com/suanpan/suanpan/pkg/nvml"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/services/exporter/gauge"
)

const (
	reportEvery  = time.Second
	patience     = 10 * time.Second // for the first sample, before leases are asked for
	lastSend     = 5 * time.Second  // for what is left when the exporter stops
	sendPatience = time.Minute      // for one batch, before it is said that it fails
	healthyAfter = 50 * time.Millisecond
)

// SampleTask returns the loop that samples devices. A driver of another version ends everything:
// only a new process can load it.
func SampleTask(sampler *gauge.Sampler) daemon.Task {
	return daemon.Task{
		Name: "sample", Run: sampler.Run,
		Fatal: func(err error) bool { return errors.Is(err, nvml.ErrReplaced) },
	}
}

// PollTask returns the loop that asks a source. It waits for the first sample, for a while.
func (e *Exporter) PollTask(source Source, sampled func() error) daemon.Task {
	return daemon.Task{Name: "leases_" + source.Name(), Run: func(ctx context.Context) error {
		for began := time.Now(); sampled() != nil && time.Since(began) < patience; {
			if !sleep(ctx, healthyAfter) {
				return nil
			}
		}
		for {
			_ = e.Poll(ctx, source) // it counts and logs its errors
			if !sleep(ctx, source.Every) {
				return nil
			}
		}
	}}
}

// ReportTask returns the loop that stores windows, and all that is left at its end. It is to be
// started before the sources.
func (e *Exporter) ReportTask() daemon.Task {
	return daemon.Task{Name: "report", Run: func(ctx context.Context) error {
		for {
			_ = e.Report(false) // it logs its errors
			if !sleep(ctx, reportEvery) {
				return e.Report(true)
			}
		}
	}}
}

// SendTask returns the loop that sends what the spool has. connect opens the log, and may wait for
// it. It is to be started before the reports.
func (e *Exporter) SendTask(connect func(context.Context) (pipeline.Appender, error)) daemon.Task {
	return daemon.Task{Name: "send", Run: func(ctx context.Context) error {
		log, err := connect(ctx)
		if err != nil {
			if ctx.Err() == nil {
				e.mu.Lock()
				e.sending = err
				e.mu.Unlock()
			}
			return err
		}
		e.mu.Lock()
		e.sending = nil
		e.mu.Unlock()
		backoff := daemon.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}
		for ctx.Err() == nil {
			once, cancel := context.WithTimeout(ctx, sendPatience)
			pause, err := e.Send(once, log)
			cancel()
			switch {
			case ctx.Err() != nil:
			case err != nil:
				e.config.Log.Warn("usage is not sent; the spool keeps it", "error", err)
				pause = backoff.Next()
			default:
				backoff.Reset()
			}
			if pause > 0 && !sleep(ctx, pause) {
				break
			}
		}
		e.sendRest(context.WithoutCancel(ctx), log)
		return nil
	}}
}

// sendRest sends what is left, as far as that is quick. The next process sends the rest.
func (e *Exporter) sendRest(ctx context.Context, log pipeline.Appender) {
	ctx, cancel := context.WithTimeout(ctx, lastSend)
	defer cancel()
	for {
		pause, err := e.Send(ctx, log)
		if pause > 0 || err != nil {
			return
		}
	}
}

// ServeTask returns the loop that answers on a unix socket, which only its owner and group can
// open.
func ServeTask(path string, handler http.Handler) daemon.Task {
	return daemon.Task{Name: "requests", Run: func(ctx context.Context) error {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("listen for leases: %w", err)
		}
		var lc net.ListenConfig
		listener, err := lc.Listen(ctx, "unix", path)
		if err != nil {
			return fmt.Errorf("listen for leases: %w", err)
		}
		if err := os.Chmod(path, 0o660); err != nil {
			return errors.Join(fmt.Errorf("listen for leases: %w", err), listener.Close())
		}
		server := &http.Server{
			Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
			WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 16,
		}
		served := make(chan error, 1)
		go func() { served <- server.Serve(listener) }()
		select {
		case err := <-served:
			return fmt.Errorf("serve leases: %w", err)
		case <-ctx.Done():
		}
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := server.Shutdown(grace); err != nil {
			_ = server.Close()
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve leases: %w", err)
		}
		return nil
	}}
}

// sleep waits, and reports whether ctx lasted as long.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Check says why usage does not reach the log, or nil.
func (e *Exporter) Check(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return errors.Join(e.storing, e.sending)
}

// CheckSources says which sources do not answer, or nil.
func (e *Exporter) CheckSources(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var errs []error
	for name, err := range e.answered {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
