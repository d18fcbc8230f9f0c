package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = 2 * time.Second
)

// errPermanent marks errors of this package that no repetition heals.
var errPermanent = errors.New("permanent")

// permanent wraps err so that it is not retried. Its text stays the same.
func permanent(err error) error { return permanentError{err} }

type permanentError struct{ error }

func (e permanentError) Unwrap() []error { return []error{e.error, errPermanent} }

// transient reports whether trying again may help: everything that connections do, and the
// error codes that Kafka calls retriable.
func transient(err error) bool {
	if errors.Is(err, errPermanent) || errors.Is(err, context.Canceled) {
		return false
	}
	var invalid *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	if errors.As(err, &invalid) || errors.As(err, &unknown) {
		return false
	}
	var code kafkago.Error
	if !errors.As(err, &code) {
		return true
	}
	switch code {
	case kafkago.KafkaStorageError, kafkago.FencedLeaderEpoch, kafkago.UnknownLeaderEpoch,
		kafkago.NotCoordinatorForGroup, kafkago.GroupCoordinatorNotAvailable,
		kafkago.GroupLoadInProgress, kafkago.RebalanceInProgress, kafkago.UnknownMemberId,
		kafkago.IllegalGeneration, kafkago.NetworkException, kafkago.BrokerNotAvailable:
		return true
	}
	return code.Temporary()
}

// retry calls do until it succeeds or fails for good, or ctx ends. It waits in between, ever
// longer. An unknown topic is given a few seconds, as the brokers learn of a new one one by one.
func (c *Client) retry(ctx context.Context, do func(context.Context) error) error {
	unknown := 0
	for pause := minBackoff; ; pause = min(2*pause, maxBackoff) {
		err := do(ctx)
		if err == nil {
			return nil
		}
		if errors.Is(err, kafkago.UnknownTopicOrPartition) {
			unknown++
		}
		if !transient(err) || unknown > 7 {
			return err
		}
		c.notify(err)
		if sleep(ctx, pause) != nil {
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

func (c *Client) notify(err error) {
	if c.config.Notify != nil {
		c.config.Notify(err)
	}
}

// sleep waits for between half of pause and all of it, so that clients do not come back at once.
func sleep(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause/2 + rand.N(pause/2))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
