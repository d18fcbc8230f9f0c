package daemon

import (
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// Secret is a text that is never shown: printed, logged or encoded it reads "(secret)" or "".
type Secret struct{ text string }

// NewSecret returns a secret that holds text.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal returns the text, for the one place that needs it.
func (s Secret) Reveal() string { return s.text }

// String implements [fmt.Stringer] without showing the text.
func (s Secret) String() string {
	if s.text == "" {
		return ""
	}
	return "(secret)"
}

// GoString implements [fmt.GoStringer] without showing the text.
func (s Secret) GoString() string { return s.String() }

// LogValue implements [slog.LogValuer] without showing the text.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText implements [encoding.TextMarshaler] without showing the text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// SecretVar makes a secret settable: by the flag --NAME-file, whose file holds it (line ends after
// it do not count), or by the environment variable SUANPAN_NAME, which Bind reads. There is no
// flag that takes the secret itself: command lines are visible to other users of a machine.
func SecretVar(flags *pflag.FlagSet, to *Secret, name, usage string) {
	usage += " (or set " + EnvName(name) + ")"
	flags.Var(&secretFile{name: name, to: to}, name+"-file", usage)
}

// maxSecretBytes bounds a file that holds a secret: a larger one is a mistake.
const maxSecretBytes = 64 << 10

// secretFile is the flag that names the file of a secret.
type secretFile struct {
	name, path string
	to         *Secret
}

// Type implements [pflag.Value].
func (*secretFile) Type() string { return "file" }

// String implements [pflag.Value].
func (f *secretFile) String() string { return f.path }

// Set implements [pflag.Value]: it reads the file.
func (f *secretFile) Set(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if len(data) > maxSecretBytes {
		return fmt.Errorf("%s is larger than %d bytes", path, maxSecretBytes)
	}
	text := strings.TrimRight(string(data), "\r\n")
	if text == "" {
		return fmt.Errorf("%s holds no secret", path)
	}
	f.path, *f.to = path, NewSecret(text)
	return nil
}
