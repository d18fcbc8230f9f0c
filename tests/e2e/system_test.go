//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	embeddedclickhouse "github.com/suanpan/suanpan/services/embedded/clickhouse"
	"github.com/suanpan/suanpan/tests/kafkatest"
)

const (
	startTimeout = 60 * time.Second
	runTimeout   = 2 * time.Minute
	stopTimeout  = 15 * time.Second // of a service that was asked to end
)

// binary is the built command.
var binary string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "suanpan-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "make folder for the command:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "suanpan")
	build := exec.Command("go", "build", "-o", binary, "../../services/suanpan")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the command: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// brokers are the kinds of Kafka that every test runs on, with the same assertions.
var brokers = []string{"embedded", "apache"}

// onBrokers runs a test on each kind of Kafka, beside other tests that do so.
func onBrokers(t *testing.T, test func(t *testing.T, s *system)) {
	t.Parallel()
	for _, kind := range brokers {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, newSystem(t, kind))
		})
	}
}

// system is a Kafka and a ClickHouse, and whatever services a test starts beside them.
type system struct {
	t          *testing.T
	dir        string
	apache     *kafkatest.Broker // nil: the embedded Kafka
	kafka      string            // host:port
	clickhouse string            // host:port
	services   map[string]*service
}

// service is a process, and how to start it again.
type service struct {
	args  []string
	admin string // host:port, "" without one
	log   string
	cmd   *exec.Cmd
	done  chan struct{} // closed when the process has ended
	err   error         // of its end
}

func newSystem(t *testing.T, kind string) *system {
	t.Helper()
	if _, err := embeddedclickhouse.FindLibrary(""); err != nil {
		if os.Getenv("SUANPAN_TEST_ALL") == "1" {
			t.Fatalf("%v: run make setup", err)
		}
		t.Skipf("NOT RUN: %v: run make setup", err)
	}
	s := &system{t: t, dir: t.TempDir(), services: make(map[string]*service)}
	t.Cleanup(s.end)
	if kind == "apache" {
		s.apache = kafkatest.Start(t)
		s.kafka = s.apache.Addr()
	} else {
		s.kafka = freeAddress(t)
		admin := freeAddress(t)
		s.start("kafka", admin, "embedded", "kafka", "--listen", s.kafka, "--data", s.path("kafka"),
			"--admin", admin)
		s.waitFor("the embedded Kafka", func() error { return dial(s.kafka) })
		s.waitReady("kafka")
	}
	s.clickhouse = freeAddress(t)
	s.start("clickhouse", "", "embedded", "clickhouse", "--listen", s.clickhouse,
		"--data", s.path("clickhouse"))
	s.waitFor("ClickHouse", func() error { _, err := s.query("SELECT 1"); return err })
	s.run("migrate")
	return s
}

func (s *system) path(name string) string { return filepath.Join(s.dir, name) }

// settings are the environment that tells every command where things are.
func (s *system) settings() []string {
	return append(os.Environ(), "SUANPAN_KAFKA="+s.kafka,
		"SUANPAN_CLICKHOUSE=http://"+s.clickhouse+"/suanpan")
}

// startService starts a rater, archiver or settler under a name and waits until it is ready.
func (s *system) startService(name, command string, args ...string) {
	s.t.Helper()
	admin := freeAddress(s.t)
	s.start(name, admin, append([]string{command, "--admin", admin}, args...)...)
	s.waitReady(name)
}

func (s *system) start(name, admin string, args ...string) {
	s.t.Helper()
	s.startProcess(name, admin, append([]string{binary}, args...)...)
}

// startProcess starts a program with its arguments.
func (s *system) startProcess(name, admin string, args ...string) {
	s.t.Helper()
	v := &service{args: args, admin: admin, log: s.path(name + ".log")}
	s.services[name] = v
	s.launch(name)
}

// launch starts a service's process, for the first time or again.
func (s *system) launch(name string) {
	s.t.Helper()
	v := s.services[name]
	out, err := os.OpenFile(v.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	v.cmd = exec.Command(v.args[0], v.args[1:]...)
	v.cmd.Env = s.settings()
	v.cmd.Stdout, v.cmd.Stderr = out, out
	v.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := v.cmd.Start(); err != nil {
		s.t.Fatalf("start %s: %v", name, err)
	}
	v.done = make(chan struct{})
	go func(cmd *exec.Cmd, done chan struct{}) { // ends with the process
		v.err = cmd.Wait()
		_ = out.Close()
		close(done)
	}(v.cmd, v.done)
}

// kill ends a service at once, with its children.
func (s *system) kill(name string) {
	s.t.Helper()
	v := s.services[name]
	_ = syscall.Kill(-v.cmd.Process.Pid, syscall.SIGKILL)
	<-v.done
}

func (s *system) signal(name string, signal syscall.Signal) {
	s.t.Helper()
	if err := s.services[name].cmd.Process.Signal(signal); err != nil {
		s.t.Fatalf("signal %s: %v", name, err)
	}
}

// stop asks a service to end, and fails where it does not end in order.
func (s *system) stop(name string) {
	s.t.Helper()
	v := s.services[name]
	s.signal(name, syscall.SIGTERM)
	select {
	case <-v.done:
		if v.err != nil {
			s.t.Errorf("%s ended with %v after SIGTERM:\n%s", name, v.err, s.tail(name))
		}
	case <-time.After(stopTimeout):
		s.t.Errorf("%s did not end within %s after SIGTERM:\n%s", name, stopTimeout, s.tail(name))
		_ = syscall.Kill(-v.cmd.Process.Pid, syscall.SIGKILL)
		<-v.done
	}
	delete(s.services, name)
}

// end kills what is left and, where the test failed, shows what the services said.
func (s *system) end() {
	for name, v := range s.services {
		_ = syscall.Kill(-v.cmd.Process.Pid, syscall.SIGKILL)
		<-v.done
		if s.t.Failed() {
			s.t.Logf("%s said:\n%s", name, s.tail(name))
		}
	}
}

func (s *system) tail(name string) string {
	data, err := os.ReadFile(s.path(name + ".log"))
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-4000):])
}

func (s *system) waitReady(name string) {
	s.t.Helper()
	s.waitFor(name+" to be ready", func() error {
		select {
		case <-s.services[name].done:
			s.t.Fatalf("%s ended: %v\n%s", name, s.services[name].err, s.tail(name))
		default:
		}
		return s.ready(name)
	})
}

func (s *system) ready(name string) error { return s.ask(name, "/readyz") }

func (s *system) healthy(name string) error { return s.ask(name, "/healthz") }

func (s *system) ask(name, path string) error {
	client := http.Client{Timeout: 10 * time.Second}
	response, err := client.Get("http://" + s.services[name].admin + path)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

// waitFor polls until there is no error.
func (s *system) waitFor(what string, poll func() error) {
	s.t.Helper()
	waitFor(s.t, what, startTimeout, poll)
}

func waitFor(t *testing.T, what string, timeout time.Duration, poll func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); {
		if err = poll(); err == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("%s not there after %s: %v", what, timeout, err)
}

// try runs a command to its end.
func (s *system) try(input string, args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	return try(s.t, s.settings(), input, args...)
}

func try(t *testing.T, env []string, input string, args ...string) (
	stdout, stderr string, code int,
) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	var out, errs bytes.Buffer
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, strings.NewReader(input), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run suanpan %s: %v", strings.Join(args, " "), err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// run runs a command that must succeed and returns what it prints.
func (s *system) run(args ...string) string {
	s.t.Helper()
	return s.runWith("", args...)
}

func (s *system) runWith(input string, args ...string) string {
	s.t.Helper()
	stdout, stderr, code := s.try(input, args...)
	if code != 0 {
		s.t.Fatalf("suanpan %s ended with %d:\n%s", strings.Join(args, " "), code, stderr)
	}
	return stdout
}

// query asks ClickHouse as curl would.
func (s *system) query(sql string) (string, error) { return s.queryIn("default", sql) }

// queryIn asks in a database.
func (s *system) queryIn(database, sql string) (string, error) {
	address := "http://" + s.clickhouse + "/?" +
		url.Values{"database": {database}, "query": {sql}}.Encode()
	client := http.Client{Timeout: time.Minute}
	response, err := client.Post(address, "text/plain", nil)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(string(body))
	}
	return string(body), err
}

// waitSummary waits until the summary from ClickHouse is as it must be, byte for byte.
func (s *system) waitSummary(want string, timeout time.Duration) {
	s.t.Helper()
	var got string
	deadline := time.Now().Add(timeout)
	for time.Now().Before(deadline) {
		var code int
		if got, _, code = s.try("", "summary"); code == 0 && got == want {
			return
		}
		time.Sleep(300 * time.Millisecond)
	}
	s.t.Fatalf("summary after %s is not that of suanpan rate:\n%s", timeout, difference(got, want))
}

// difference shows the lines that only one of two texts has.
func difference(got, want string) string {
	count := make(map[string]int)
	for line := range strings.Lines(want) {
		count[line]++
	}
	for line := range strings.Lines(got) {
		count[line]--
	}
	var out strings.Builder
	for line := range maps.Keys(count) {
		if n := count[line]; n != 0 && out.Len() < 4000 {
			fmt.Fprintf(&out, "%+d %s", -n, line)
		}
	}
	return out.String()
}

// nextPort is the last port that freeAddress gave out. Its ports lie below those that the system
// takes for the other end of connections: a service that is killed must find its port free again.
var nextPort atomic.Int32

func init() { nextPort.Store(20_000 + rand.Int32N(8000)) }

func freeAddress(t *testing.T) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", nextPort.Add(1))
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
	t.Fatal("no free port")
	return ""
}

func dial(address string) error {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return err
	}
	return c.Close()
}

// get returns the body of an HTTP answer.
func get(t *testing.T, address string) string {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s, %v", address, response.Status, err)
	}
	return string(body)
}
