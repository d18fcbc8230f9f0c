package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/suanpan/suanpan/pkg/kafka"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/schemas"
)

// sendBatch is how many records are appended together.
const sendBatch = 5000

func sendCommand() *cobra.Command {
	var links kafkaFlags
	var replay bool
	cmd := &cobra.Command{
		Use:   "send FILE|-",
		Short: "Send events to the log",
		Long: `Send events, CloudEvents in JSON, one a line, to the topics that they belong to: market
prices to theirs, all others to the usage topic under their tenant's key. Events are sent as they
are: what cannot be rated ends as a dead letter that names the reason. Sending a file twice bills it
once.`,
		Example: `  suanpan send events.jsonl
  suanpan send --replay market.jsonl   # past prices, before any usage`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			client, done, err := connectKafka(ctx, &links, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if replay {
				if err := refuseReplay(ctx, client); err != nil {
					return errors.Join(err, done())
				}
			}
			input := cmd.InOrStdin()
			if args[0] != "-" {
				file, err := os.Open(args[0])
				if err != nil {
					return errors.Join(fmt.Errorf("open events: %w", err), done())
				}
				defer func() { _ = file.Close() }() // only read from
				input = file
			}
			count, err := send(ctx, client, input, replay)
			if err := errors.Join(err, done()); err != nil {
				return fmt.Errorf("after %d events: %w", count, err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d events sent\n", count)
			return nil
		},
	}
	links.register(cmd.Flags())
	cmd.Flags().BoolVar(&replay, "replay", false,
		"the file has past market prices, and there is no usage yet")
	return cmd
}

func send(ctx context.Context, client *kafka.Client, input io.Reader, replay bool) (int, error) {
	reader := bufio.NewReaderSize(input, 1<<20)
	parser := metering.NewParser()
	var batch []pipeline.Record
	count := 0
	flush := func() error {
		if err := client.Append(ctx, batch...); err != nil {
			return fmt.Errorf("append events: %w", err)
		}
		count += len(batch)
		batch = batch[:0]
		return nil
	}
	for {
		line, err := reader.ReadBytes('\n')
		if text := bytes.TrimSpace(line); len(text) > 0 {
			batch = append(batch, recordOf(parser, text, replay))
			if len(batch) == sendBatch {
				if err := flush(); err != nil {
					return count, err
				}
			}
		}
		if err == io.EOF {
			return count, flush()
		}
		if err != nil {
			return count, fmt.Errorf("read events: %w", err)
		}
	}
}

// recordOf addresses an event. One that cannot be read goes to the usage topic all the same: its
// dead letter tells what is wrong with it.
func recordOf(parser *metering.Parser, text []byte, replay bool) pipeline.Record {
	var e metering.Event
	_ = parser.Parse(text, &e) // the rater judges it
	if e.Kind == metering.MarketPrice {
		record := pipeline.Record{Topic: schemas.TopicMarket, Value: text}
		if replay {
			record.Headers = []pipeline.Header{{Key: pipeline.HeaderReplay, Value: []byte("1")}}
		}
		return record
	}
	return pipeline.Record{Topic: schemas.TopicUsage, Key: []byte(e.Tenant), Value: text}
}
