package kafkatest_test

import (
	"net"
	"testing"
	"time"

	"github.com/suanpan/suanpan/tests/kafkatest"
)

func TestStart_survivesKillAndStop(t *testing.T) {
	began := time.Now()
	broker := kafkatest.Start(t)
	t.Logf("up after %v", time.Since(began))
	addr := broker.Addr()
	broker.Kill(t)
	if conn, err := net.Dial("tcp", addr); err == nil {
		conn.Close()
		t.Fatal("somebody still listens after Kill")
	}
	broker.Restart(t)
	if broker.Addr() != addr {
		t.Fatalf("restarted at %s instead of %s", broker.Addr(), addr)
	}
	broker.Stop(t)
	broker.Restart(t)
}
