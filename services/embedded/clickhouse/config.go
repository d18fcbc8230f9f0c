package clickhouse

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
)

// Defaults of [Config].
const (
	DefaultListen      = "127.0.0.1:8123"
	DefaultMaxQueries  = 16
	DefaultMemoryBytes = 3 << 30
)

// EnvPassword names the environment variable that [Config.RegisterFlags] reads the password from:
// a flag would show it to everyone on the machine.
const EnvPassword = "SUANPAN_CLICKHOUSE_PASSWORD"

// Config describes one embedded ClickHouse.
type Config struct {
	// Listen is host:port of the HTTP interface; empty is [DefaultListen], port 0 any free port.
	// An address that is not loopback needs a Password.
	Listen string
	// DataDir holds the tables; it is made if it is missing. One process may use it at a time.
	DataDir string
	// Library is the path of libchdb; empty lets [FindLibrary] look for it.
	Library string
	// User and Password are asked of every request where they are not empty.
	User, Password string
	// TLSCert and TLSKey are PEM files; with both set the interface is HTTPS.
	TLSCert, TLSKey string
	// MaxQueries bounds the statements that run at once; further ones wait for their turn.
	MaxQueries int
	// MemoryBytes is the engine's memory cap; a query may use three quarters of it, and groups and
	// sorts on disk beyond a quarter. The default suits a laptop with 8 GiB.
	MemoryBytes int64
}

// RegisterFlags adds the flags of the child's command line to fs; parsing fs fills c. The password
// comes from the environment, see [EnvPassword].
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	c.Password = os.Getenv(EnvPassword)
	fs.StringVar(&c.Listen, "listen", DefaultListen, "`host:port` of the HTTP interface")
	fs.StringVar(&c.DataDir, "data", "", "`directory` of the tables")
	fs.StringVar(&c.Library, "lib", "", "`file` of libchdb (default: "+EnvLibrary+", then the cache)")
	fs.StringVar(&c.User, "user", "", "user `name` to ask for (default: any)")
	fs.StringVar(&c.TLSCert, "tls-cert", "", "PEM `file` of the certificate")
	fs.StringVar(&c.TLSKey, "tls-key", "", "PEM `file` of the certificate's key")
	fs.IntVar(&c.MaxQueries, "max-queries", DefaultMaxQueries, "statements that run at once")
	fs.Int64Var(&c.MemoryBytes, "memory", DefaultMemoryBytes, "memory cap of the engine in `bytes`")
}

// arguments returns the command line that RegisterFlags parses back into c, less the password.
func (c *Config) arguments() []string {
	return []string{
		"--listen=" + c.Listen, "--data=" + c.DataDir, "--lib=" + c.Library, "--user=" + c.User,
		"--tls-cert=" + c.TLSCert, "--tls-key=" + c.TLSKey,
		fmt.Sprintf("--max-queries=%d", c.MaxQueries), fmt.Sprintf("--memory=%d", c.MemoryBytes),
	}
}

// withDefaults fills in what is empty and checks the rest.
func (c Config) withDefaults() (Config, error) {
	if c.Listen == "" {
		c.Listen = DefaultListen
	}
	if c.MaxQueries == 0 {
		c.MaxQueries = DefaultMaxQueries
	}
	if c.MemoryBytes == 0 {
		c.MemoryBytes = DefaultMemoryBytes
	}
	return c, c.check()
}

func (c Config) check() error {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("parse listen address: %w", err)
	}
	ip := net.ParseIP(host)
	loopback := host == "localhost" || ip != nil && ip.IsLoopback()
	switch {
	case !loopback && c.Password == "":
		return fmt.Errorf("listen on %s: an address that is not loopback needs a password",
			c.Listen)
	case c.DataDir == "":
		return errors.New("check config: the data directory is missing")
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return errors.New("check config: a TLS certificate and its key go together")
	case c.MaxQueries < 1 || c.MaxQueries > 1000:
		return fmt.Errorf("check config: max queries %d is not within 1 and 1000", c.MaxQueries)
	case c.MemoryBytes < 256<<20:
		return fmt.Errorf("check config: the engine needs 256 MiB, not %d bytes", c.MemoryBytes)
	}
	return nil
}
