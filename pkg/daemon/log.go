package daemon

import (
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/pflag"
)

// LogOptions say how a service logs.
type LogOptions struct {
	Format string // text or json
	Level  string // debug, info, warn or error
}

// Register adds --log-format and --log-level to flags.
func (o *LogOptions) Register(flags *pflag.FlagSet) {
	flags.StringVar(&o.Format, "log-format", "text", "how to log: text or json")
	flags.StringVar(&o.Level, "log-level", "info", "least level to log: debug, info, warn or error")
}

// New returns a logger that writes to w, one line an entry. Nothing global is touched: the caller
// hands it on.
func (o LogOptions) New(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	switch strings.ToLower(o.Level) {
	case "debug", "info", "warn", "error":
		if err := level.UnmarshalText([]byte(o.Level)); err != nil {
			return nil, fmt.Errorf("read --log-level: %w", err)
		}
	default:
		return nil, fmt.Errorf("read --log-level: %q is none of debug, info, warn, error", o.Level)
	}
	options := &slog.HandlerOptions{Level: level}
	switch o.Format {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	default:
		return nil, fmt.Errorf("read --log-format: %q is neither text nor json", o.Format)
	}
}
