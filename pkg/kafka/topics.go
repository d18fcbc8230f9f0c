package kafka

import (
	"context"
	"errors"
	"fmt"

	kafkago "github.com/segmentio/kafka-go"
)

// Topic is what a topic of the log must be like. Its records are kept for ever.
type Topic struct {
	Name       string
	Partitions int
	// AppendTime: the time of a record is the broker's when it was appended, instead of the
	// producer's.
	AppendTime bool
}

const (
	maxReplicas = 3
	minInSync   = 2 // of maxReplicas
)

// EnsureTopics creates the topics that do not exist: on up to 3 brokers, of which with 3 at least
// 2 must have a record before it is acknowledged. It refuses topics that exist with another number
// of partitions, or that would forget records or take their producers' time. It retries until ctx
// ends what may pass.
func (c *Client) EnsureTopics(ctx context.Context, topics ...Topic) error {
	for _, topic := range topics {
		err := c.retry(ctx, func(ctx context.Context) error { return c.ensure(ctx, topic) })
		if err != nil {
			return fmt.Errorf("ensure topic %s: %w", topic.Name, err)
		}
	}
	return nil
}

func (c *Client) ensure(ctx context.Context, topic Topic) error {
	m, err := c.metadata(ctx, topic.Name)
	if err != nil {
		return err
	}
	if len(m.Topics) == 1 && m.Topics[0].Error == nil {
		return c.check(ctx, topic, len(m.Topics[0].Partitions))
	}
	err = c.create(ctx, topic, len(m.Brokers))
	if err != nil && !errors.Is(err, kafkago.TopicAlreadyExists) {
		return err
	}
	// The cached metadata may not have the topic yet: let the next try find it.
	nodes, err := c.leaders(ctx, topic.Name)
	if err != nil {
		return err
	}
	return c.check(ctx, topic, len(nodes))
}

// settings returns the topic's configuration.
func (t Topic) settings() map[string]string {
	settings := map[string]string{
		"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1",
		"message.timestamp.type": "CreateTime",
	}
	if t.AppendTime {
		settings["message.timestamp.type"] = "LogAppendTime"
	}
	return settings
}

func (c *Client) create(ctx context.Context, topic Topic, brokers int) error {
	config := kafkago.TopicConfig{
		Topic: topic.Name, NumPartitions: topic.Partitions,
		ReplicationFactor: max(1, min(maxReplicas, brokers)),
	}
	settings := topic.settings()
	if config.ReplicationFactor == maxReplicas {
		settings["min.insync.replicas"] = fmt.Sprint(minInSync)
	}
	for name, value := range settings {
		config.ConfigEntries = append(config.ConfigEntries,
			kafkago.ConfigEntry{ConfigName: name, ConfigValue: value})
	}
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	response, err := c.admin.CreateTopics(ctx, &kafkago.CreateTopicsRequest{
		Topics: []kafkago.TopicConfig{config},
	})
	if err != nil {
		return fmt.Errorf("create topic: %w", err)
	}
	if err := response.Errors[topic.Name]; err != nil {
		return fmt.Errorf("create topic: %w", err)
	}
	return nil
}

// check refuses an existing topic that is not as wanted. Who may not see its configuration has to
// trust whoever created it.
func (c *Client) check(ctx context.Context, topic Topic, partitions int) error {
	if partitions != topic.Partitions {
		return permanent(fmt.Errorf("it has %d partitions instead of %d: which partition a "+
			"tenant's records go to would change", partitions, topic.Partitions))
	}
	settings := topic.settings()
	names := make([]string, 0, len(settings))
	for name := range settings {
		names = append(names, name)
	}
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	response, err := c.admin.DescribeConfigs(ctx, &kafkago.DescribeConfigsRequest{
		Resources: []kafkago.DescribeConfigRequestResource{{
			ResourceType: kafkago.ResourceTypeTopic, ResourceName: topic.Name, ConfigNames: names,
		}},
	})
	if err != nil {
		return fmt.Errorf("read its configuration: %w", err)
	}
	for _, resource := range response.Resources {
		if errors.Is(resource.Error, kafkago.TopicAuthorizationFailed) {
			return nil
		}
		if resource.Error != nil {
			return fmt.Errorf("read its configuration: %w", resource.Error)
		}
		for _, entry := range resource.ConfigEntries {
			want, ok := settings[entry.ConfigName]
			if ok && entry.ConfigValue != want {
				return permanent(fmt.Errorf("its %s is %s instead of %s",
					entry.ConfigName, entry.ConfigValue, want))
			}
		}
	}
	return nil
}
