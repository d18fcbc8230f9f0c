package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/suanpan/suanpan/pkg/clickhouse"
	"github.com/suanpan/suanpan/pkg/pipeline"
	"github.com/suanpan/suanpan/schemas"
)

func deadLetterCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "deadletter",
		Aliases: []string{"dl"},
		Short:   "List, show and retry records that could not be rated",
		Long: `List, show and retry records that could not be rated.

Nothing is dropped: such a record is kept with its reason and its original bytes, in the topic
suanpan.deadletter and the table dead_letters. Mend the cause (apply the missing tenant or price,
say), then retry: the original bytes go back to the usage topic. What is billed already is not
billed twice.`,
	}
	cmd.AddCommand(deadLetterListCommand(), deadLetterShowCommand(), deadLetterRetryCommand())
	return cmd
}

// letterFlags choose dead letters.
type letterFlags struct {
	store  storeFlags
	filter clickhouse.DeadLetterFilter
}

func (l *letterFlags) register(cmd *cobra.Command) {
	l.store.register(cmd.Flags())
	cmd.Flags().StringVar(&l.filter.Reason, "reason", "", "only those with this `reason`")
	cmd.Flags().StringVar(&l.filter.Tenant, "tenant", "", "only those with the key of this `tenant`")
}

// letter is a dead letter as it is printed.
type letter struct {
	Position string    `json:"position"` // topic/partition/offset
	SeenAt   time.Time `json:"seen_at"`
	Reason   string    `json:"reason"`
	Detail   string    `json:"detail"`
	Tenant   string    `json:"tenant"`
	Source   string    `json:"source"`
	ID       string    `json:"id"`
}

func letterOf(l *pipeline.DeadLetter) letter {
	return letter{
		Position: fmt.Sprintf("%s/%d/%d", l.Topic, l.Partition, l.Offset), SeenAt: l.SeenAt,
		Reason: l.Reason, Detail: l.Detail, Tenant: string(l.Key), Source: l.Source, ID: l.ID,
	}
}

func deadLetterListCommand() *cobra.Command {
	var flags letterFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List dead letters, by topic, partition and offset",
		Example: `  suanpan deadletter list --reason no_price
  suanpan deadletter list --json --limit 0 | jq -r .position`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			letters, err := flags.read(cmd.Context())
			if err != nil {
				return err
			}
			return printLetters(cmd.OutOrStdout(), letters, asJSON)
		},
	}
	flags.register(cmd)
	cmd.Flags().IntVar(&flags.filter.Limit, "limit", 100, "at most so many; 0 is all")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, one a line")
	return cmd
}

func (l *letterFlags) read(ctx context.Context) ([]pipeline.DeadLetter, error) {
	rows, err := l.store.open(ctx)
	if err != nil {
		return nil, err
	}
	letters, err := rows.DeadLetters(ctx, l.filter)
	return letters, errors.Join(err, rows.Close())
}

func printLetters(out io.Writer, letters []pipeline.DeadLetter, asJSON bool) error {
	if asJSON {
		buffered := bufio.NewWriter(out)
		encoder := json.NewEncoder(buffered)
		for i := range letters {
			if err := encoder.Encode(letterOf(&letters[i])); err != nil {
				return err
			}
		}
		return buffered.Flush()
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "POSITION\tSEEN AT\tREASON\tTENANT\tID\tDETAIL")
	for i := range letters {
		l := letterOf(&letters[i])
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", l.Position,
			l.SeenAt.UTC().Format(time.RFC3339), l.Reason, l.Tenant, l.ID, l.Detail)
	}
	return table.Flush()
}

func deadLetterShowCommand() *cobra.Command {
	var store storeFlags
	cmd := &cobra.Command{
		Use:   "show TOPIC/PARTITION/OFFSET",
		Short: "Print the original bytes of a dead letter",
		Long: "Print the original bytes of a dead letter on standard output, and why it is one on " +
			"standard error.",
		Example: "  suanpan deadletter show suanpan.usage/12/3456 | jq .data",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			letters, err := lettersAt(cmd.Context(), &store, args)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", letters[0].Reason, letters[0].Detail)
			_, err = cmd.OutOrStdout().Write(append(letters[0].Value, '\n'))
			return err
		},
	}
	store.register(cmd.Flags())
	return cmd
}

// lettersAt returns the dead letters at positions, each topic/partition/offset.
func lettersAt(ctx context.Context, store *storeFlags, positions []string) (
	[]pipeline.DeadLetter, error,
) {
	for _, position := range positions {
		if _, _, _, err := parsePosition(position); err != nil {
			return nil, err
		}
	}
	rows, err := store.open(ctx)
	if err != nil {
		return nil, err
	}
	var letters []pipeline.DeadLetter
	for _, position := range positions {
		topic, partition, offset, err := parsePosition(position)
		if err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		l, ok, err := rows.DeadLetter(ctx, topic, partition, offset)
		if err == nil && !ok {
			err = fmt.Errorf("there is no dead letter %s", position)
		}
		if err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		letters = append(letters, l)
	}
	return letters, rows.Close()
}

// parsePosition reads topic/partition/offset.
func parsePosition(text string) (topic string, partition int, offset int64, err error) {
	parts := strings.Split(text, "/")
	if len(parts) == 3 {
		partition, err = strconv.Atoi(parts[1])
		if err == nil {
			offset, err = strconv.ParseInt(parts[2], 10, 64)
		}
		if err == nil {
			return parts[0], partition, offset, nil
		}
	}
	return "", 0, 0, fmt.Errorf("%q is not TOPIC/PARTITION/OFFSET (%w)", text, errUsage)
}

func deadLetterRetryCommand() *cobra.Command {
	var flags letterFlags
	var links kafkaFlags
	var all bool
	cmd := &cobra.Command{
		Use:   "retry [TOPIC/PARTITION/OFFSET ...]",
		Short: "Put the original bytes of dead letters back on their topic",
		Example: `  suanpan deadletter retry --reason no_price
  suanpan deadletter retry suanpan.usage/12/3456`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && !all && flags.filter.Reason == "" && flags.filter.Tenant == "" {
				return fmt.Errorf("say which: positions, --reason, --tenant or --all (%w)", errUsage)
			}
			var letters []pipeline.DeadLetter
			var err error
			if len(args) > 0 {
				letters, err = lettersAt(cmd.Context(), &flags.store, args)
			} else {
				letters, err = flags.read(cmd.Context())
			}
			if err != nil {
				return err
			}
			client, done, err := connectKafka(cmd.Context(), &links, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			count, err := retry(cmd.Context(), client, letters)
			fmt.Fprintf(cmd.OutOrStdout(), "%d dead letters retried\n", count)
			if err == nil {
				err = flags.retried(cmd.Context(), letters)
			}
			return errors.Join(err, done())
		},
	}
	flags.register(cmd)
	links.register(cmd.Flags())
	cmd.Flags().BoolVar(&all, "all", false, "retry all of them")
	return cmd
}

// retried notes that dead letters were sent again, so that they hold no invoice back.
func (l *letterFlags) retried(ctx context.Context, letters []pipeline.DeadLetter) error {
	rows, err := l.store.open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(rows.WriteRetries(ctx, letters, time.Now()), rows.Close())
}

// retry appends dead letters anew. Only usage can be retried: a market price of the past cannot
// hold any more.
func retry(ctx context.Context, log pipeline.Appender, letters []pipeline.DeadLetter) (int,
	error,
) {
	count := 0
	var batch []pipeline.Record
	flush := func() error {
		if err := log.Append(ctx, batch...); err != nil {
			return fmt.Errorf("append dead letters: %w", err)
		}
		count += len(batch)
		batch = batch[:0]
		return nil
	}
	for i := range letters {
		if letters[i].Topic != schemas.TopicUsage {
			continue
		}
		batch = append(batch, pipeline.Record{
			Topic: schemas.TopicUsage, Key: letters[i].Key, Value: letters[i].Value,
		})
		if len(batch) == sendBatch {
			if err := flush(); err != nil {
				return count, err
			}
		}
	}
	return count, flush()
}
