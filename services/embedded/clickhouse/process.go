package clickhouse

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// startTime bounds how long a child may take until it answers.
const startTime = 60 * time.Second

// Process is an embedded ClickHouse in a child process.
type Process struct {
	command *exec.Cmd
	stdin   io.Closer // the child's life line: closed, by us or our death, it stops
	address string
	scheme  string
	done    chan struct{}
	err     error // of the child's exit; read after done
	stop    sync.Once
}

// Start runs exe with args and the flags of [Config.RegisterFlags], which must end in [Serve], and
// returns once it answers statements. The child's log goes to output. ctx bounds the start only:
// the child runs until [Process.Stop] or [Process.Kill], until it fails, or until this process
// ends in whatever way, and it is not started again. The owner waits on [Process.Done].
func Start(ctx context.Context, exe string, args []string, cfg Config, output io.Writer,
) (*Process, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	// Without ctx's end, which bounds the start only. The child's death with its parent hangs on
	// its standard input rather than on Pdeathsig, which would fire when a thread of ours ends.
	command := exec.CommandContext(context.WithoutCancel(ctx), exe,
		append(append([]string{}, args...), cfg.arguments()...)...)
	command.Env = append(os.Environ(), envChild+"=1", EnvPassword+"="+cfg.Password,
		"TZ="+timezone)
	command.Stderr = output
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start ClickHouse: %w", err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start ClickHouse: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start ClickHouse: %w", err)
	}
	p := &Process{command: command, stdin: stdin, scheme: "http", done: make(chan struct{})}
	if cfg.TLSCert != "" {
		p.scheme = "https"
	}
	ready := make(chan string, 1)
	go p.watch(stdout, output, ready) // ends with the child
	if err := p.awaitReady(ctx, cfg, ready); err != nil {
		_ = p.Kill() // it failed already, or is of no use
		<-p.done
		return nil, fmt.Errorf("start ClickHouse: %w", err)
	}
	return p, nil
}

// watch reads the child's standard output, then waits for its exit.
func (p *Process) watch(stdout io.Reader, output io.Writer, ready chan<- string) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if address, ok := strings.CutPrefix(lines.Text(), readyPrefix); ok {
			select {
			case ready <- address:
			default: // said before
			}
			continue
		}
		fmt.Fprintln(output, lines.Text())
	}
	_, _ = io.Copy(output, stdout) // after a line too long to scan
	p.err = p.command.Wait()
	close(p.done)
}

func (p *Process) awaitReady(ctx context.Context, cfg Config, ready <-chan string) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	select {
	case p.address = <-ready:
	case <-p.done:
		return fmt.Errorf("it ended: %w", p.exitError())
	case <-ctx.Done():
		return ctx.Err()
	}
	if cfg.TLSCert != "" {
		return nil // its certificate need not be one that we trust; it listens
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL(),
		strings.NewReader("SELECT 1"))
	if err != nil {
		return err
	}
	if cfg.User != "" || cfg.Password != "" {
		request.SetBasicAuth(firstOf(cfg.User, "default"), cfg.Password)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(text)) != "1" {
		return fmt.Errorf("it answered %s: %s", response.Status, text)
	}
	return nil
}

func (p *Process) exitError() error {
	if p.err == nil {
		return errors.New("exit status 0")
	}
	return p.err
}

// Addr is the host:port that the child listens on.
func (p *Process) Addr() string { return p.address }

// URL is the address of the HTTP interface.
func (p *Process) URL() string { return p.scheme + "://" + p.address + "/" }

// PID is the child's process id.
func (p *Process) PID() int { return p.command.Process.Pid }

// Done is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the child's end and returns why it ended: nil after a [Process.Stop] that closed
// the engine in order.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Stop asks the child to end and waits for it; when ctx ends first it kills it. Either way rows
// that were acknowledged stay. It may be called again, and after the child's end.
func (p *Process) Stop(ctx context.Context) error {
	p.stop.Do(func() {
		_ = p.stdin.Close() // enough by itself; the signal is for children that do not read it
		_ = p.command.Process.Signal(syscall.SIGTERM)
	})
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		_ = p.Kill()
		<-p.done
		return fmt.Errorf("stop ClickHouse: killed: %w", ctx.Err())
	}
}

// Kill ends the child at once. What it acknowledged is kept.
func (p *Process) Kill() error {
	if err := p.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill ClickHouse: %w", err)
	}
	return nil
}
