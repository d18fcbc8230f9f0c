package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/suanpan/suanpan/pkg/pipeline"
)

const (
	dialTimeout     = 5 * time.Second
	exchangeTimeout = 30 * time.Second // for an answer, besides what a fetch waits for records
	metadataTTL     = 5 * time.Second

	defaultBatchBytes = 1_000_000 // below message.max.bytes of Kafka, 1,048,588
)

// Config says where the log is and how to reach it. Only Brokers is required.
type Config struct {
	Brokers  []string // host:port of some brokers; the others are learnt from them
	ClientID string   // shown in the brokers' logs; default "suanpan"
	TLS      TLS
	SASL     SASL
	// Compression of appended batches: "none", "snappy", "lz4" or "zstd"; default "lz4".
	Compression string
	// BatchBytes bounds an appended batch as it is sent, so at most the brokers'
	// message.max.bytes; default 1,000,000. A larger record is tried alone.
	BatchBytes int
	// Notify, if not nil, is told every error that is retried. It may be called concurrently.
	Notify func(error)
}

// Client is a connection to the log. Its methods may be called concurrently.
type Client struct {
	config    Config
	codec     compression
	transport *kafkago.Transport
	dialer    *kafkago.Dialer
	admin     *kafkago.Client
	addr      net.Addr
	scratch   sync.Pool // *encoder
}

var _ pipeline.Appender = (*Client)(nil)

// Open returns a client after it has reached a broker. It retries until ctx ends, except where the
// configuration is wrong or the brokers refuse the credentials.
func Open(ctx context.Context, config Config) (*Client, error) {
	if len(config.Brokers) == 0 {
		return nil, errors.New("open log: no brokers given")
	}
	if config.ClientID == "" {
		config.ClientID = "suanpan"
	}
	if config.BatchBytes <= 0 {
		config.BatchBytes = defaultBatchBytes
	}
	codec, err := parseCompression(config.Compression)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	tlsConfig, err := config.TLS.load()
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	mechanism, err := config.SASL.mechanism(config.TLS)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	dialer := &net.Dialer{Timeout: dialTimeout}
	c := &Client{
		config: config,
		codec:  codec,
		addr:   kafkago.TCP(config.Brokers...),
		transport: &kafkago.Transport{
			Dial: dialer.DialContext, DialTimeout: dialTimeout, MetadataTTL: metadataTTL,
			ClientID: config.ClientID, TLS: tlsConfig, SASL: mechanism,
		},
		dialer: &kafkago.Dialer{
			ClientID: config.ClientID, Timeout: dialTimeout, DualStack: true,
			TLS: tlsConfig, SASLMechanism: mechanism,
		},
	}
	c.admin = &kafkago.Client{Addr: c.addr, Transport: c.transport}
	c.scratch.New = func() any { return new(encoder) }
	err = c.retry(ctx, func(ctx context.Context) error {
		_, err := c.metadata(ctx)
		return err
	})
	if err != nil {
		c.transport.CloseIdleConnections()
		return nil, fmt.Errorf("open log at %v: %w", config.Brokers, err)
	}
	return c, nil
}

// Close releases the connections. Groups and tails must be closed before.
func (c *Client) Close() error {
	c.transport.CloseIdleConnections()
	return nil
}

// metadata returns the layout of the cluster with the given topics, or with all of them. It is at
// most a few seconds old.
func (c *Client) metadata(
	ctx context.Context, topics ...string,
) (*kafkago.MetadataResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	m, err := c.admin.Metadata(ctx, &kafkago.MetadataRequest{Topics: topics})
	if err != nil {
		return nil, fmt.Errorf("read cluster metadata: %w", err)
	}
	return m, nil
}

// noNode is the leader of a partition that has none at the moment.
const noNode = -1

// leaders returns the node that leads each partition of a topic, by partition, or noNode.
func (c *Client) leaders(ctx context.Context, topic string) ([]int32, error) {
	m, err := c.metadata(ctx, topic)
	if err != nil {
		return nil, err
	}
	if len(m.Topics) != 1 {
		return nil, fmt.Errorf("read topic %s: %w", topic, kafkago.UnknownTopicOrPartition)
	}
	if err := m.Topics[0].Error; err != nil {
		return nil, fmt.Errorf("read topic %s: %w", topic, err)
	}
	nodes := make([]int32, len(m.Topics[0].Partitions))
	for i := range nodes {
		nodes[i] = noNode
	}
	for _, p := range m.Topics[0].Partitions {
		// An unknown leader has no host; its ID is 0, as that of a broker may be.
		if p.ID >= 0 && p.ID < len(nodes) && p.Leader.Host != "" {
			nodes[p.ID] = int32(p.Leader.ID)
		}
	}
	return nodes, nil
}
