package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxBodyBytes is the size that a webhook's body stays under.
const MaxBodyBytes = 20_000

// Secret is a text that must not be shown, such as daemon.Secret.
type Secret interface {
	// Reveal returns the text.
	Reveal() string
}

// SigningKey signs webhooks. It is never shown.
type SigningKey struct{ key []byte }

// Sizes of signing keys, in bytes.
const (
	minKeyBytes = 24
	maxKeyBytes = 64
)

// ParseKey reads a secret as Standard Webhooks writes it: base64 of 24 to 64 random bytes, with
// the prefix whsec_.
func ParseKey(s Secret) (SigningKey, error) {
	text, ok := strings.CutPrefix(strings.TrimSpace(s.Reveal()), "whsec_")
	if !ok {
		return SigningKey{}, errors.New("parse signing key: it does not begin with whsec_")
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil { // the error would say something of the text
		return SigningKey{}, errors.New("parse signing key: after whsec_ is no base64")
	}
	if len(key) < minKeyBytes || len(key) > maxKeyBytes {
		return SigningKey{}, fmt.Errorf("parse signing key: it has %d bytes, not %d to %d",
			len(key), minKeyBytes, maxKeyBytes)
	}
	return SigningKey{key}, nil
}

// String hides the key.
func (SigningKey) String() string { return "(secret)" }

// GoString hides the key.
func (SigningKey) GoString() string { return "(secret)" }

// MarshalText hides the key.
func (SigningKey) MarshalText() ([]byte, error) { return []byte("(secret)"), nil }

// sign returns the signature of a body with its id and the seconds of the attempt.
func (k SigningKey) sign(id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, k.key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// Keys returns the keys that sign with a name ("" is the default one): the newest, and the older
// ones that receivers may still have. It is asked at each attempt, so keys may change.
type Keys func(name string) ([]SigningKey, error)

// NewKeys returns keys that do not change, of secrets as [ParseKey] reads them, by name. The error
// names all that it cannot read.
func NewKeys(secrets map[string][]Secret) (Keys, error) {
	keys := make(map[string][]SigningKey, len(secrets))
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		for _, s := range secrets[name] {
			key, err := ParseKey(s)
			if err != nil {
				errs = append(errs, fmt.Errorf("secret %q: %w", name, err))
				continue
			}
			keys[name] = append(keys[name], key)
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return func(name string) ([]SigningKey, error) {
		found, ok := keys[name]
		if !ok {
			return nil, errors.New("no secret has this name")
		}
		return found, nil
	}, nil
}

// webhook posts as Standard Webhooks says.
type webhook struct {
	poster *poster
	target string
	secret string // the name of its keys
	keys   Keys
}

// Send makes one attempt.
func (w *webhook) Send(ctx context.Context, m Message) error {
	keys, err := w.keys(w.secret)
	if err != nil {
		return fmt.Errorf("find signing keys %q: %w", w.secret, err)
	}
	if len(keys) == 0 {
		return fmt.Errorf("find signing keys %q: there are none", w.secret)
	}
	body, err := webhookBody(m)
	if err != nil {
		return &SendError{Outcome: Rejected, Err: err}
	}
	timestamp := strconv.FormatInt(w.poster.now().Unix(), 10)
	signatures := make([]string, len(keys))
	for i, key := range keys {
		signatures[i] = key.sign(m.ID, timestamp, body)
	}
	header := make(http.Header)
	header.Set("Webhook-Id", m.ID)
	header.Set("Webhook-Timestamp", timestamp)
	header.Set("Webhook-Signature", strings.Join(signatures, " "))
	return w.poster.post(ctx, w.target, header, body)
}

// webhookData is the data of a webhook's body.
type webhookData struct {
	Alert     string            `json:"alert"`
	Status    Status            `json:"status"`
	Severity  Severity          `json:"severity"`
	Since     time.Time         `json:"since"`
	Tenant    string            `json:"tenant,omitempty"`
	Language  string            `json:"language,omitempty"`
	Title     string            `json:"title"`
	Summary   string            `json:"summary,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Evidence  []Figure          `json:"evidence,omitempty"`
	Query     string            `json:"query,omitempty"`
	Details   json.RawMessage   `json:"details,omitempty"`
	Truncated []string          `json:"truncated,omitempty"` // what had no place
}

// webhookBody returns the body of a message, the same at every attempt. What does not fit is left
// out, the data for programs first, and named.
func webhookBody(m Message) ([]byte, error) {
	data := webhookData{
		Alert: m.Alert, Status: m.Status, Severity: m.Severity, Since: m.since().UTC(),
		Tenant: m.Tenant, Language: m.Language, Title: m.Title, Summary: m.Summary,
		Labels: m.Labels, Evidence: m.Evidence, Query: m.Query, Details: m.Data,
	}
	leaveOut := []struct {
		name string
		from func()
	}{
		{"details", func() { data.Details = nil }},
		{"query", func() { data.Query = "" }},
		{"labels", func() { data.Labels = nil }},
	}
	for {
		body, err := encode(struct {
			Type      string      `json:"type"`
			Timestamp time.Time   `json:"timestamp"`
			Data      webhookData `json:"data"`
		}{m.Type, m.Time.UTC(), data})
		if err != nil {
			return nil, fmt.Errorf("encode message: %w", err)
		}
		if len(body) < MaxBodyBytes {
			return body, nil
		}
		if len(leaveOut) == 0 {
			return nil, fmt.Errorf("encode message: %d bytes are too many", len(body))
		}
		leaveOut[0].from()
		data.Truncated = append(data.Truncated, leaveOut[0].name)
		leaveOut = leaveOut[1:]
	}
}

// encode is JSON on one line, without the escapes that only web pages need.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
