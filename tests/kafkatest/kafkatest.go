// Package kafkatest runs a real Apache Kafka for tests: one node in KRaft mode, from the artifacts
// that Maven fetches. It needs Java 17 or later and Maven; without them tests are skipped, or fail
// where SUANPAN_TEST_ALL=1 is set.
package kafkatest

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	version      = "4.4.0"
	heap         = "-Xmx512m"
	startTimeout = 90 * time.Second
	stopTimeout  = 30 * time.Second
	fetchTimeout = 10 * time.Minute // of the artifacts, once per machine
	clusterID    = "c3VhbnBhbi10ZXN0LWxvZw"
)

//go:embed pom.xml
var pom []byte

// Broker is a running Kafka. Its records outlive Kill and Stop until the test ends.
type Broker struct {
	jars   string
	dir    string
	config string
	addr   string
	cmd    *exec.Cmd
	done   chan struct{} // closed when cmd has ended
}

// Start starts a broker that is stopped when the test ends. Settings are lines of its
// configuration, such as "message.max.bytes=10000".
func Start(t testing.TB, settings ...string) *Broker {
	t.Helper()
	for _, program := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(program); err != nil {
			missing(t, "Apache Kafka not tested: %s is not installed", program)
		}
	}
	jars, err := fetch()
	if err != nil {
		missing(t, "Apache Kafka not tested: %v", err)
	}
	b := &Broker{jars: jars, dir: t.TempDir()}
	if err := b.format(settings); err != nil {
		t.Fatalf("format Apache Kafka: %v", err)
	}
	t.Cleanup(func() {
		if b.cmd != nil {
			b.Kill(t)
		}
	})
	b.Restart(t)
	return b
}

// missing skips a test, or fails it where everything has to be tested.
func missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("SUANPAN_TEST_ALL") == "1" {
		t.Fatalf(format, args...)
	}
	t.Skipf("SKIPPED, set SUANPAN_TEST_ALL=1 to make this fail: "+format, args...)
}

// Addr returns the host:port to connect to.
func (b *Broker) Addr() string { return b.addr }

// Stop stops the broker in good order.
func (b *Broker) Stop(t testing.TB) {
	t.Helper()
	b.end(t, syscall.SIGTERM)
}

// Kill ends the broker without a warning.
func (b *Broker) Kill(t testing.TB) {
	t.Helper()
	b.end(t, syscall.SIGKILL)
}

func (b *Broker) end(t testing.TB, signal os.Signal) {
	t.Helper()
	if err := b.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("end Apache Kafka: %v", err)
	}
	select {
	case <-b.done:
	case <-time.After(stopTimeout):
		t.Errorf("Apache Kafka has not ended after %v", stopTimeout)
		b.cmd.Process.Kill()
		<-b.done
	}
	b.cmd = nil
}

// Restart starts the broker again, after Stop or Kill, on the same port and records.
func (b *Broker) Restart(t testing.TB) {
	t.Helper()
	logPath := filepath.Join(b.dir, "kafka.log")
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatalf("start Apache Kafka: %v", err)
	}
	defer log.Close()
	cmd := b.java("kafka.Kafka", b.config)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatalf("start Apache Kafka: %v", err)
	}
	b.cmd, b.done = cmd, make(chan struct{})
	go func(done chan struct{}) {
		cmd.Wait()
		close(done)
	}(b.done)
	if err := b.await(); err != nil {
		text, _ := os.ReadFile(logPath)
		t.Fatalf("start Apache Kafka: %v\n%s", err, text[max(0, len(text)-4000):])
	}
}

// await waits until the broker accepts connections.
func (b *Broker) await() error {
	deadline := time.Now().Add(startTimeout)
	for time.Now().Before(deadline) {
		conn, err := net.DialTimeout("tcp", b.addr, time.Second)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-b.done:
			return errors.New("it ended")
		case <-time.After(100 * time.Millisecond):
		}
	}
	return fmt.Errorf("not up after %v", startTimeout)
}

// format writes the configuration and prepares the data directory.
func (b *Broker) format(settings []string) error {
	port, controller, err := freePorts()
	if err != nil {
		return err
	}
	b.addr = fmt.Sprintf("127.0.0.1:%d", port)
	lines := append([]string{
		"process.roles=broker,controller",
		"node.id=1",
		fmt.Sprintf("controller.quorum.voters=1@127.0.0.1:%d", controller),
		fmt.Sprintf("listeners=PLAINTEXT://%s,CONTROLLER://127.0.0.1:%d", b.addr, controller),
		"advertised.listeners=PLAINTEXT://" + b.addr,
		"controller.listener.names=CONTROLLER",
		"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"log.dirs=" + filepath.Join(b.dir, "data"),
		"offsets.topic.replication.factor=1",
		"offsets.topic.num.partitions=1",
		"transaction.state.log.replication.factor=1",
		"transaction.state.log.min.isr=1",
		"transaction.state.log.num.partitions=1",
		"group.initial.rebalance.delay.ms=0",
		"auto.create.topics.enable=false",
	}, settings...)
	b.config = filepath.Join(b.dir, "server.properties")
	text := strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(b.config, []byte(text), 0o600); err != nil {
		return err
	}
	out, err := b.java("kafka.tools.StorageTool",
		"format", "-t", clusterID, "-c", b.config).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

func (b *Broker) java(args ...string) *exec.Cmd {
	options := []string{
		heap, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", filepath.Join(b.jars, "*"),
	}
	cmd := exec.Command("java", append(options, args...)...)
	cmd.Dir = b.dir
	return cmd
}

func freePorts() (int, int, error) {
	var ports [2]int
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, 0, err
		}
		defer l.Close()
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports[0], ports[1], nil
}

// fetch returns a directory with Kafka's class files. It asks Maven once per machine.
func fetch() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a cache directory: %w", err)
	}
	parent := filepath.Join(cache, "suanpan", "kafkatest")
	jars := filepath.Join(parent, version)
	if _, err := os.Stat(jars); err == nil {
		return jars, nil
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("make a cache directory: %w", err)
	}
	work, err := os.MkdirTemp(parent, "fetching-")
	if err != nil {
		return "", fmt.Errorf("make a cache directory: %w", err)
	}
	defer os.RemoveAll(work)
	if err := os.WriteFile(filepath.Join(work, "pom.xml"), pom, 0o644); err != nil {
		return "", fmt.Errorf("write pom.xml: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "mvn", "-q", "-B", "dependency:copy-dependencies",
		"-DoutputDirectory="+filepath.Join(work, "jars"))
	cmd.Dir = work
	if out, err := cmd.CombinedOutput(); err != nil {
		out = bytes.TrimSpace(out)
		return "", fmt.Errorf("fetch with Maven: %w\n%s", err, out[max(0, len(out)-2000):])
	}
	if err := os.Rename(filepath.Join(work, "jars"), jars); err != nil {
		if _, err := os.Stat(jars); err == nil {
			return jars, nil // another test was faster
		}
		return "", fmt.Errorf("keep what Maven fetched: %w", err)
	}
	return jars, nil
}
