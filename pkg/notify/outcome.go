package notify

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Channel is one receiver.
type Channel interface {
	// Send makes one attempt and returns nil if the receiver took the message. An error that is
	// or wraps a *[SendError] says what follows from it; any other may be tried again. A message
	// is as [Message.Validate] wants it. Send may be called by several goroutines, and errors hold
	// neither secrets nor URLs beyond their host.
	Send(ctx context.Context, m Message) error
}

// Outcome says how an attempt ended, or what became of a delivery.
type Outcome string

// The outcomes.
const (
	// Delivered: the receiver took it.
	Delivered Outcome = "delivered"
	// Retry: it failed now, and may work later.
	Retry Outcome = "retry"
	// Rejected: it can never work as it is, such as an address that nobody has.
	Rejected Outcome = "rejected"
	// Disabled: the receiver wants no more messages at all.
	Disabled Outcome = "disabled"
	// Expired: it failed for so long that nobody tries any more. No attempt ends like this.
	Expired Outcome = "expired"
)

// SendError is an attempt that failed, and what follows from it.
type SendError struct {
	Outcome Outcome       // Retry, Rejected or Disabled
	Status  int           // of HTTP or SMTP; 0 is none
	After   time.Duration // with Retry: the least pause that the receiver asks for; 0 is any
	Err     error
}

// Error says why, with the status.
func (e *SendError) Error() string {
	text := string(e.Outcome)
	if e.Status != 0 {
		text = fmt.Sprintf("%s: status %d", text, e.Status)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *SendError) Unwrap() error { return e.Err }

// classify returns what Send's result means.
func classify(err error) SendError {
	if err == nil {
		return SendError{Outcome: Delivered}
	}
	if e, ok := errors.AsType[*SendError](err); ok {
		return SendError{Outcome: e.Outcome, Status: e.Status, After: e.After, Err: err}
	}
	return SendError{Outcome: Retry, Err: err}
}

// rejected returns an error that no later attempt can mend.
func rejected(format string, args ...any) error {
	return &SendError{Outcome: Rejected, Err: fmt.Errorf(format, args...)}
}
