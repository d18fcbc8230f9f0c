// Package kafka is the log for one machine: a Kafka broker in this process that keeps its records
// in a directory. It is franz-go's kfake, told to be durable.
//
// An append is acknowledged after an fsync of the record batch; so are committed offsets. Records
// are kept for ever and read from disk; memory holds an index entry per batch only. What it does
// not do: it handles one request at a time, it does not notice when an fsync fails, and when it
// starts it reads its whole log, which then takes about that much memory for a moment. Once the
// log, compressed, no longer fits into memory, run a Kafka cluster.
package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Config says where the broker listens and keeps its records. Only DataDir is required.
type Config struct {
	DataDir string // created if needed; used by one broker at a time
	Listen  string // host:port, default 127.0.0.1:9092; port 0 takes a free one
	// Advertise is the host:port that clients are told to connect to; default: Listen, with the
	// port taken. It is required where Listen is a wildcard address.
	Advertise string
	TLS       *tls.Config // nil: unencrypted
	// Users may connect with SASL SCRAM-SHA-512, by name with their passwords. Without users
	// everybody may.
	Users map[string]string
}

// Broker is a running broker.
type Broker struct {
	cluster *kfake.Cluster
	addr    string
	lock    *os.File
	stop    func() bool
	once    sync.Once
}

// Start starts a broker on the records in config.DataDir. It runs until Close, or until ctx ends.
func Start(ctx context.Context, config Config, log *slog.Logger) (*Broker, error) {
	if config.DataDir == "" {
		return nil, errors.New("start broker: no data directory given")
	}
	if err := os.MkdirAll(config.DataDir, 0o750); err != nil {
		return nil, fmt.Errorf("start broker: %w", err)
	}
	lock, err := lockDir(config.DataDir)
	if err != nil {
		return nil, fmt.Errorf("start broker: %w", err)
	}
	b := &Broker{lock: lock}
	if err := b.start(ctx, config, log); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("start broker on %s: %w", config.DataDir, err)
	}
	b.stop = context.AfterFunc(ctx, b.shutdown)
	return b, nil
}

func (b *Broker) start(ctx context.Context, config Config, log *slog.Logger) error {
	listener, err := listen(ctx, config)
	if err != nil {
		return err
	}
	options := []kfake.Opt{
		kfake.NumBrokers(1),
		kfake.ClusterID("suanpan"),
		kfake.DataDir(config.DataDir),
		kfake.SyncWrites(),
		kfake.ListenFn(func(string, string) (net.Listener, error) { return listener, nil }),
		kfake.WithLogger(logger{log}),
		kfake.BrokerConfigs(map[string]string{
			"log.retention.ms": "-1", "log.retention.bytes": "-1",
			// Committed offsets of a group that has been away stay valid: 68 years.
			"offsets.retention.minutes": "35791394",
			"log.segment.bytes":         "67108864",
		}),
	}
	if config.TLS != nil {
		options = append(options, kfake.TLS(config.TLS))
	}
	if len(config.Users) > 0 {
		options = append(options, kfake.EnableSASL())
		for name, password := range config.Users {
			options = append(options, kfake.Superuser("SCRAM-SHA-512", name, password))
		}
	}
	// kfake prefers the users it has stored to those it is given.
	err = os.Remove(filepath.Join(config.DataDir, "sasl.json"))
	if err == nil || os.IsNotExist(err) {
		b.cluster, err = kfake.NewCluster(options...)
	}
	if err != nil {
		_ = listener.Close()
		return err
	}
	debug.FreeOSMemory() // loading reads the whole log, and needs none of it afterwards
	stamp := &stamper{topic: b.cluster.TopicInfo, topicID: b.cluster.TopicIDInfo, log: log}
	b.cluster.ControlKey(int16(kmsg.Produce), stamp.control)
	listener.open()
	b.addr = listener.Addr().String()
	return nil
}

// Addr returns the host:port to connect to.
func (b *Broker) Addr() string { return b.addr }

// Close stops the broker. It may be called more than once.
func (b *Broker) Close() {
	b.stop()
	b.shutdown()
}

func (b *Broker) shutdown() {
	b.once.Do(func() {
		b.cluster.Close()
		_ = b.lock.Close()
	})
}
