package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/suanpan/suanpan/pkg/clickhouse"
	"github.com/suanpan/suanpan/pkg/daemon"
	"github.com/suanpan/suanpan/pkg/kafka"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/schemas"
)

// kafkaFlags say where the log is.
type kafkaFlags struct {
	config   kafka.Config
	password daemon.Secret
}

func (k *kafkaFlags) register(flags *pflag.FlagSet) {
	flags.StringSliceVar(&k.config.Brokers, "kafka", []string{"127.0.0.1:9092"},
		"`host:port` of Kafka brokers, separated by commas")
	flags.BoolVar(&k.config.TLS.Enabled, "kafka-tls", false, "connect to Kafka by TLS")
	flags.StringVar(&k.config.TLS.CA, "kafka-tls-ca", "", "PEM `file` of authorities to trust")
	flags.StringVar(&k.config.TLS.Cert, "kafka-tls-cert", "", "PEM `file` of the client certificate")
	flags.StringVar(&k.config.TLS.Key, "kafka-tls-key", "", "PEM `file` of its key")
	flags.StringVar(&k.config.SASL.Mechanism, "kafka-sasl", "",
		"SASL `mechanism`: plain, scram-sha-256 or scram-sha-512")
	flags.StringVar(&k.config.SASL.User, "kafka-user", "", "SASL user `name`")
	daemon.SecretVar(flags, &k.password, "kafka-password", "SASL password")
}

// open connects to the log and makes sure that its topics are as they must be.
func (k *kafkaFlags) open(ctx context.Context, log *slog.Logger) (*kafka.Client, error) {
	config := k.config
	config.SASL.Password = k.password.Reveal()
	config.Notify = func(err error) { log.Warn("kafka call failed, will be repeated", "error", err) }
	client, err := kafka.Open(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := client.EnsureTopics(ctx,
		kafka.Topic{Name: schemas.TopicUsage, Partitions: schemas.UsagePartitions, AppendTime: true},
		kafka.Topic{Name: schemas.TopicCatalog, Partitions: 1, AppendTime: true},
		kafka.Topic{Name: schemas.TopicMarket, Partitions: 1, AppendTime: true},
		kafka.Topic{Name: schemas.TopicBilling, Partitions: 1, AppendTime: true},
		kafka.Topic{Name: schemas.TopicDeadLetter, Partitions: 1, AppendTime: true},
	); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return client, nil
}

func newPrices(client *kafka.Client) *pipeline.Prices {
	return pipeline.NewPrices(client.Tail(schemas.TopicCatalog), client.Tail(schemas.TopicMarket))
}

// fatal says which errors no repetition cures: an offset that the log does not have.
func fatal(err error) bool { return errors.Is(err, kafka.ErrOffset) }

// storeFlags say where ClickHouse is.
type storeFlags struct {
	config   clickhouse.Config
	password daemon.Secret
}

func (s *storeFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&s.config.URL, "clickhouse", "http://127.0.0.1:8123/suanpan",
		"`URL` of ClickHouse: http(s)://user@host:port/database, or clickhouse:// for its own protocol")
	flags.StringVar(&s.config.TLS.CA, "clickhouse-tls-ca", "", "PEM `file` of authorities to trust")
	flags.StringVar(&s.config.TLS.Cert, "clickhouse-tls-cert", "",
		"PEM `file` of the client certificate")
	flags.StringVar(&s.config.TLS.Key, "clickhouse-tls-key", "", "PEM `file` of its key")
	daemon.SecretVar(flags, &s.password, "clickhouse-password", "ClickHouse password")
}

// open connects to ClickHouse and applies its data definitions.
func (s *storeFlags) open(ctx context.Context) (*clickhouse.Store, error) {
	config := s.config
	config.Password = s.password.Reveal()
	store, err := clickhouse.Open(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := store.Migrate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("apply data definitions: %w", err), store.Close())
	}
	return store, nil
}
