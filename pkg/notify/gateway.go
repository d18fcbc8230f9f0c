package notify

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/suanpan/suanpan/pkg/catalog"
)

// GatewayOptions are the settings of all channels.
type GatewayOptions struct {
	HTTP HTTPOptions
	// Keys sign webhooks. Without them, webhooks fail and are tried again.
	Keys Keys
	// Email is the SMTP server. Without one (nil), e-mail fails and is tried again.
	Email *EmailOptions
	// Hold is how long Alertmanager shows an alert unless it resolves. Default: DefaultHold.
	Hold time.Duration
}

// Gateway opens channels. It may be used by several goroutines.
type Gateway struct {
	poster *poster
	mailer *mailer
	keys   Keys
	hold   time.Duration
	log    *slog.Logger
}

// NewGateway returns a gateway. Messages to the channel log go to log.
func NewGateway(log *slog.Logger, o GatewayOptions) (*Gateway, error) {
	g := &Gateway{poster: newPoster(o.HTTP), keys: o.Keys, hold: o.Hold, log: log}
	if g.hold <= 0 {
		g.hold = DefaultHold
	}
	if g.keys == nil {
		g.keys = func(string) ([]SigningKey, error) { return nil, nil }
	}
	if o.Email != nil {
		var err error
		if g.mailer, err = newMailer(*o.Email, log); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// Open returns the channel of a receiver. It connects to nothing.
func (g *Gateway) Open(to catalog.Channel) (Channel, error) {
	switch to.Kind {
	case catalog.Webhook:
		return &webhook{g.poster, to.Target, to.Secret, g.keys}, nil
	case catalog.Alertmanager:
		return &alertmanager{g.poster, to.Target, g.hold}, nil
	case catalog.Log:
		return &logger{g.log}, nil
	case catalog.Email:
		if g.mailer == nil {
			return nil, errors.New("open channel: no SMTP server is set")
		}
		return &recipient{g.mailer, to.Target}, nil
	default:
		return nil, &SendError{
			Outcome: Rejected, Err: fmt.Errorf("open channel: kind %q is unknown", to.Kind),
		}
	}
}
