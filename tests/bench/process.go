package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	startTimeout = 60 * time.Second
	stopTimeout  = 20 * time.Second
	pollEvery    = 50 * time.Millisecond
)

// command runs the built command to its end. What it prints goes to stdout, or is shown where it
// fails.
func (b *bench) command(ctx context.Context, stdin io.Reader, stdout io.Writer, args ...string,
) error {
	cmd := exec.CommandContext(ctx, b.binary, args...)
	var errText bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, &errText
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopTimeout
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("suanpan %s: %w\n%s", args[0], err, tail(errText.Bytes()))
	}
	b.ended.cpu = cmd.ProcessState.UserTime().Seconds() + cmd.ProcessState.SystemTime().Seconds()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		b.ended.peak = float64(usage.Maxrss) / 1024
	}
	return nil
}

// tail is the end of a long text.
func tail(text []byte) []byte {
	const most = 2000
	return text[max(0, len(text)-most):]
}

// process is one long-running process of the built command.
type process struct {
	name  string
	cmd   *exec.Cmd
	log   string // file
	ended chan struct{}
	err   error // after ended
}

// start starts a process. Its log is a file in the run's folder.
func (b *bench) start(ctx context.Context, name string, args ...string) (*process, error) {
	p := &process{name: name, log: filepath.Join(b.dir, name+".log"), ended: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log of %s: %w", name, err)
	}
	defer log.Close()
	p.cmd = exec.CommandContext(ctx, b.binary, args...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	// A Ctrl-C goes to us alone: we stop them in order.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = stopTimeout
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// stop ends the process, by force where it does not end by itself.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// await polls until done, and fails when the process ends before or time runs out.
func (p *process) await(ctx context.Context, timeout time.Duration,
	done func() (bool, error),
) error {
	deadline := time.After(timeout)
	var last error
	for {
		ok, err := done()
		if ok && err == nil {
			return nil
		}
		last = err
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.ended:
			text, _ := os.ReadFile(p.log) // best effort: the error says the rest
			return fmt.Errorf("%s ended: %w\n%s", p.name, p.err, tail(text))
		case <-deadline:
			text, _ := os.ReadFile(p.log)
			return errors.Join(fmt.Errorf("%s took longer than %s\n%s", p.name, timeout, tail(text)),
				last)
		case <-time.After(pollEvery):
		}
	}
}

// cpu is the time that the process spent on processors so far, in seconds; 0 where the system does
// not tell.
func (p *process) cpu() float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name may have blanks
	fields := strings.Fields(rest)
	const user, system, hertz = 11, 12, 100
	if len(fields) <= system {
		return 0
	}
	u, _ := strconv.ParseFloat(fields[user], 64)
	s, _ := strconv.ParseFloat(fields[system], 64)
	return (u + s) / hertz
}

// peak is the most memory that the process had at a time, in MiB; 0 where the system does not tell.
func (p *process) peak() float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, _ := strconv.ParseFloat(fields[0], 64)
	return kib / 1024
}

// ownCPU is the time that this process spent on processors so far, in seconds.
func ownCPU() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

// freeAddr is an address that nobody listens on.
func freeAddr() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	addr := listener.Addr().String()
	return addr, listener.Close()
}

// broker starts an embedded Kafka on a new folder.
func (b *bench) broker(ctx context.Context, part string) (*process, string, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, "", err
	}
	p, err := b.start(ctx, "kafka-"+part, "embedded", "kafka", "--listen", addr,
		"--data", filepath.Join(b.dir, "kafka-"+part))
	if err != nil {
		return nil, "", err
	}
	p.name = "kafka"
	return p, addr, p.await(ctx, startTimeout, func() (bool, error) {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			return false, err
		}
		return true, conn.Close()
	})
}

// engine starts an embedded ClickHouse on a new folder: what an earlier part left to be merged must
// not slow down a later one.
func (b *bench) engine(ctx context.Context, part string) (*process, string, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, "", err
	}
	p, err := b.start(ctx, "clickhouse-"+part, "embedded", "clickhouse", "--listen", addr,
		"--data", filepath.Join(b.dir, "clickhouse-"+part))
	if err != nil {
		return nil, "", err
	}
	p.name = "clickhouse"
	return p, addr, p.await(ctx, startTimeout, func() (bool, error) {
		_, err := query(ctx, addr, "SELECT 1")
		return err == nil, err
	})
}

// query asks ClickHouse over HTTP and returns its answer, without the end of the last line.
func query(ctx context.Context, addr, sql string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/",
		strings.NewReader(sql))
	if err != nil {
		return "", fmt.Errorf("ask ClickHouse: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("ask ClickHouse: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return "", fmt.Errorf("read ClickHouse's answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("ask ClickHouse: %s: %s", response.Status, tail(text))
	}
	return strings.TrimSpace(string(text)), nil
}
