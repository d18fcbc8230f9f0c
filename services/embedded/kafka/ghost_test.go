package kafka_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/suanpan/suanpan/services/embedded/kafka"
)

const ghostPartitions = 8

// A member that dies while it waits for a rebalance is missed after its session timeout like any
// other. The library behind the broker would not always wait for it: every second such member kept
// its partitions for ever, and nobody read them.
func TestBroker_missesAMemberThatDiedWhileItJoined(t *testing.T) {
	b, err := start(kafka.Config{DataDir: t.TempDir(), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	_, err = client(t, b.Addr()).CreateTopics(t.Context(), &kafkago.CreateTopicsRequest{
		Topics: []kafkago.TopicConfig{{
			Topic: "events", NumPartitions: ghostPartitions, ReplicationFactor: 1,
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	live := joinGroup(t, b.Addr(), nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := live.Next(ctx); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		joinAndDie(t, b.Addr())
		shared := false
		for owned := 0; owned < ghostPartitions || !shared; {
			generation, err := live.Next(ctx)
			if err != nil {
				t.Fatalf("the partitions of a member that died are nobody's: %v", err)
			}
			owned = len(generation.Assignments["events"])
			shared = shared || owned < ghostPartitions
		}
	}
}

func joinGroup(t *testing.T, addr string, dialer *kafkago.Dialer) *kafkago.ConsumerGroup {
	t.Helper()
	group, err := kafkago.NewConsumerGroup(kafkago.ConsumerGroupConfig{
		ID: "g", Brokers: []string{addr}, Topics: []string{"events"}, Dialer: dialer,
		HeartbeatInterval: time.Second, SessionTimeout: 6 * time.Second,
		RebalanceTimeout: 6 * time.Second, JoinGroupBackoff: 100 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = group.Close() })
	return group
}

// joinAndDie joins the group and breaks its connections before the live member has noticed, at its
// next heartbeat: it is as if the process was killed.
func joinAndDie(t *testing.T, addr string) {
	t.Helper()
	var mu sync.Mutex
	var conns []net.Conn
	dead := false
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		if dead {
			return nil, errors.New("this process is dead")
		}
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			conns = append(conns, conn)
		}
		return conn, err
	}
	joinGroup(t, addr, &kafkago.Dialer{DialFunc: dial})
	time.Sleep(200 * time.Millisecond)
	mu.Lock()
	defer mu.Unlock()
	dead = true
	for _, conn := range conns {
		_ = conn.Close()
	}
}
