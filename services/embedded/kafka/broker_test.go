package kafka_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"go.uber.org/goleak"

	"github.com/suanpan/suanpan/services/embedded/kafka"
)

// dirVariable tells a copy of the test program to be a broker on that directory.
const dirVariable = "SUANPAN_TEST_BROKER_DIR"

func TestMain(m *testing.M) {
	dir := os.Getenv(dirVariable)
	if dir == "" {
		goleak.VerifyTestMain(m)
		return
	}
	b, err := start(kafka.Config{DataDir: dir, Listen: os.Getenv(dirVariable + "_LISTEN")})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(b.Addr())
	select {} // until killed
}

func start(config kafka.Config) (*kafka.Broker, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return kafka.Start(context.Background(), config, log)
}

// child is a broker in a process of its own.
type child struct {
	cmd  *exec.Cmd
	addr string
}

func startChild(t *testing.T, dir, listen string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), dirVariable+"="+dir, dirVariable+"_LISTEN="+listen)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: cmd}
	t.Cleanup(c.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("read the broker's address: %v", err)
	}
	c.addr = strings.TrimSpace(line)
	return c
}

func (c *child) kill() {
	c.cmd.Process.Signal(syscall.SIGKILL)
	c.cmd.Wait()
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func client(t *testing.T, addr string) *kafkago.Client {
	transport := &kafkago.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &kafkago.Client{Addr: kafkago.TCP(addr), Transport: transport}
}

func createTopic(t *testing.T, c *kafkago.Client, topic string) {
	t.Helper()
	response, err := c.CreateTopics(testContext(t), &kafkago.CreateTopicsRequest{
		Topics: []kafkago.TopicConfig{{Topic: topic, NumPartitions: 1, ReplicationFactor: 1}},
	})
	if err == nil {
		err = response.Errors[topic]
	}
	if err != nil {
		t.Fatal(err)
	}
}

// produce appends numbers from 0 until an error, or until it has appended limit, and returns how
// many were acknowledged.
func produce(ctx context.Context, c *kafkago.Client, topic string, limit int) (int, error) {
	for i := 0; i < limit; i++ {
		value := kafkago.NewBytes(fmt.Appendf(nil, "%d", i))
		response, err := c.Produce(ctx, &kafkago.ProduceRequest{
			Topic: topic, RequiredAcks: kafkago.RequireAll,
			Records: kafkago.NewRecordReader(kafkago.Record{Value: value}),
		})
		if err == nil {
			err = response.Error
		}
		if err != nil {
			return i, err
		}
	}
	return limit, nil
}

func TestBroker_keepsWhatItAcknowledgedWhenKilled(t *testing.T) {
	dir := t.TempDir()
	first := startChild(t, dir, "127.0.0.1:0")
	createTopic(t, client(t, first.addr), "log")
	commit(t, first.addr, "readers", 77)

	time.AfterFunc(time.Second, func() { first.cmd.Process.Signal(syscall.SIGKILL) })
	acknowledged, err := produce(testContext(t), client(t, first.addr), "log", 1<<30)
	if err == nil || acknowledged < 100 {
		t.Fatalf("got %d acknowledgements and error %v before the kill", acknowledged, err)
	}
	first.kill()

	second := startChild(t, dir, first.addr)
	if second.addr != first.addr {
		t.Fatalf("restarted on %s instead of %s", second.addr, first.addr)
	}
	for i, value := range readAll(t, second.addr, acknowledged) {
		if value != fmt.Sprint(i) {
			t.Fatalf("record %d is %q", i, value)
		}
	}
	if got := committed(t, second.addr, "readers"); got != 77 {
		t.Fatalf("got committed offset %d, want 77", got)
	}
}

func group(t *testing.T, addr, id string) (*kafkago.ConsumerGroup, *kafkago.Generation) {
	t.Helper()
	g, err := kafkago.NewConsumerGroup(kafkago.ConsumerGroupConfig{
		ID: id, Brokers: []string{addr}, Topics: []string{"log"},
	})
	if err != nil {
		t.Fatal(err)
	}
	generation, err := g.Next(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	return g, generation
}

func commit(t *testing.T, addr, id string, offset int64) {
	t.Helper()
	g, generation := group(t, addr, id)
	defer g.Close()
	if err := generation.CommitOffsets(map[string]map[int]int64{"log": {0: offset}}); err != nil {
		t.Fatal(err)
	}
}

func committed(t *testing.T, addr, id string) int64 {
	t.Helper()
	g, generation := group(t, addr, id)
	defer g.Close()
	return generation.Assignments["log"][0].Offset
}

func readAll(t *testing.T, addr string, count int) []string {
	t.Helper()
	r := kafkago.NewReader(kafkago.ReaderConfig{
		Brokers: []string{addr}, Topic: "log",
		MaxWait: 100 * time.Millisecond,
	})
	defer r.Close()
	values := make([]string, 0, count)
	for range count {
		m, err := r.ReadMessage(testContext(t))
		if err != nil {
			t.Fatalf("after %d of %d records: %v", len(values), count, err)
		}
		values = append(values, string(m.Value))
	}
	return values
}

func TestBroker_resumesAfterClose(t *testing.T) {
	config := kafka.Config{DataDir: t.TempDir(), Listen: "127.0.0.1:0"}
	for round := range 3 {
		b, err := start(config)
		if err != nil {
			t.Fatal(err)
		}
		config.Listen = b.Addr()
		c := client(t, b.Addr())
		if round == 0 {
			createTopic(t, c, "log")
		}
		if _, err := produce(testContext(t), c, "log", 10); err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, b.Addr(), 10*(round+1)); got[len(got)-1] != "9" {
			t.Fatalf("round %d: got %v", round, got)
		}
		b.Close()
		b.Close()
	}
}

func TestStart_refusesADirectoryInUse(t *testing.T) {
	config := kafka.Config{DataDir: t.TempDir(), Listen: "127.0.0.1:0"}
	b, err := start(config)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := start(config); !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Fatalf("got error %v, want EWOULDBLOCK", err)
	}
}

func TestStart_refusesBadConfigurations(t *testing.T) {
	for name, config := range map[string]kafka.Config{
		"no data directory given":            {},
		"an address to advertise is needed":  {DataDir: t.TempDir(), Listen: ":0"},
		"listen tcp: address no-port: miss":  {DataDir: t.TempDir(), Listen: "no-port"},
		"start broker: mkdir /dev/null: not": {DataDir: "/dev/null"},
	} {
		b, err := start(config)
		if err == nil {
			b.Close()
		}
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got error %v, want one with %q", err, name)
		}
	}
}

func TestStart_advertisesAndStopsWithItsContext(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listen := free.Addr().String()
	free.Close()
	ctx, cancel := context.WithCancel(context.Background())
	b, err := kafka.Start(ctx, kafka.Config{
		DataDir: t.TempDir(), Listen: listen,
		Advertise: "kafka.example:19092",
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	brokers, err := client(t, listen).Metadata(ctx, &kafkago.MetadataRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if got := brokers.Brokers[0]; got.Host != "kafka.example" || got.Port != 19092 {
		t.Errorf("clients are told %+v", got)
	}
	cancel()
	b.Close() // waits for whoever closes it
	if conn, err := net.Dial("tcp", listen); err == nil {
		conn.Close()
		t.Error("somebody still listens")
	}
}
