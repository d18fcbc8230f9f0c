package catalog

import (
	"regexp"

	"go.yaml.in/yaml/v3"
)

// MaxChannels is the number of channels of one budget or policy.
const MaxChannels = 10

// ChannelKind says how a message is sent.
type ChannelKind string

// The kinds of channels.
const (
	Webhook      ChannelKind = "webhook"
	Email        ChannelKind = "email"
	Alertmanager ChannelKind = "alertmanager"
	Log          ChannelKind = "log"
)

// Channel is where a message goes.
type Channel struct {
	Kind   ChannelKind
	Target string // the URL or e-mail address; "" for the log
	Secret string // of a webhook: the name of the secret that signs, "" is the default one
}

// MaxURLBytes is the length of the longest URL of a channel.
const MaxURLBytes = 2048

// urlPattern is an http or https URL without user and password, which would stay in the log.
var urlPattern = regexp.MustCompile(
	`^https?://(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?` +
		`(?:[/?][!-~]*)?$`)

func (r *reader) channels(n *yaml.Node) []Channel {
	var all []Channel
	r.list(n, "notify", func(n *yaml.Node) { all = append(all, r.channel(n)) })
	if len(all) > MaxChannels {
		r.fail(n, "notify has %d channels, more than %d", len(all), MaxChannels)
	}
	return all
}

func (r *reader) channel(n *yaml.Node) Channel {
	var c Channel
	kinds := 0
	one := func(kind ChannelKind, read func(n *yaml.Node) string) field {
		return field{string(kind), false, func(n *yaml.Node) {
			kinds++
			c.Kind, c.Target = kind, read(n)
		}}
	}
	url := func(n *yaml.Node) string { return r.url(n) }
	r.mapping(n, "channel",
		one(Webhook, url),
		one(Email, func(n *yaml.Node) string { return r.email(n, "email") }),
		one(Alertmanager, url),
		one(Log, func(n *yaml.Node) string {
			if !r.boolean(n, "log") {
				r.fail(n, "log is true, or the channel is left out")
			}
			return ""
		}),
		field{"secret", false, func(n *yaml.Node) { c.Secret = r.name(n, "secret") }})
	if n.Kind != yaml.MappingNode {
		return c
	}
	if kinds != 1 {
		r.fail(n, "a channel has one of webhook, email, alertmanager, log")
	} else if c.Secret != "" && c.Kind != Webhook {
		r.fail(n, "secret is for a webhook: it names the secret that signs")
	}
	return c
}

func (r *reader) url(n *yaml.Node) string {
	s := r.text(n, "url")
	if !urlPattern.MatchString(s) || len(s) > MaxURLBytes {
		r.fail(n, "url %q is not like https://example.com/path, without user and password (secrets are "+
			"named by secret), at most %d bytes", s, MaxURLBytes)
	}
	return s
}
