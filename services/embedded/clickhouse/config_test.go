package clickhouse

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConfig_flagsCarryEverythingButThePassword(t *testing.T) {
	want := Config{
		Listen: "127.0.0.1:1", DataDir: "/d", Library: "/l", User: "u", Password: "secret",
		TLSCert: "/c", TLSKey: "/k", MaxQueries: 7, MemoryBytes: 1 << 30,
	}
	arguments := want.arguments()
	if strings.Contains(strings.Join(arguments, " "), want.Password) {
		t.Errorf("the command line shows the password: %q", arguments)
	}
	t.Setenv(EnvPassword, want.Password)
	var got Config
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	got.RegisterFlags(flags)
	if err := flags.Parse(arguments); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestConfig_refusesWhatIsNotSafe(t *testing.T) {
	f := func(cfg Config, want string) {
		t.Helper()
		if _, err := cfg.withDefaults(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", cfg, err, want)
		}
	}
	f(Config{DataDir: "d", Listen: "0.0.0.0:8123"}, "needs a password")
	f(Config{DataDir: "d", Listen: "8123"}, "parse listen address")
	f(Config{}, "data directory is missing")
	f(Config{DataDir: "d", TLSCert: "c"}, "go together")
	f(Config{DataDir: "d", MaxQueries: -1}, "max queries")
	f(Config{DataDir: "d", MemoryBytes: 1}, "256 MiB")
	cfg := Config{DataDir: "d", Listen: "0.0.0.0:8123", Password: "x"}
	if _, err := cfg.withDefaults(); err != nil {
		t.Error(err)
	}
}

func TestFindLibrary_namedThenEnvironmentThenCache(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache)
	t.Setenv(EnvLibrary, "")
	if _, err := FindLibrary(""); !errors.Is(err, ErrNoLibrary) {
		t.Errorf("with an empty cache: %v", err)
	}
	cached, err := cachedLibrary()
	if err != nil {
		t.Fatal(err)
	}
	place := func(path string) string {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	f := func(named, want string) {
		t.Helper()
		if got, err := FindLibrary(named); err != nil || got != want {
			t.Errorf("FindLibrary(%q) = %q, %v, want %q", named, got, err, want)
		}
	}
	place(cached)
	f("", cached)
	byEnvironment, named := place(filepath.Join(cache, "env.so")), place(filepath.Join(cache, "n"))
	t.Setenv(EnvLibrary, byEnvironment)
	f("", byEnvironment)
	f(named, named)
	if _, err := FindLibrary(filepath.Join(cache, "missing")); err == nil {
		t.Error("a named library that is missing was replaced by another")
	}
}

// The set-up script must fetch the version that this package looks for.
func TestLibraryVersion_isTheOneThatTheSetUpScriptPins(t *testing.T) {
	path := filepath.Join("..", "..", "..", "deployments", "setup", "libchdb.versions")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 6 && fields[0] != "#" {
			if strings.HasPrefix(fields[2], "@chdb/") {
				lines++
				if fields[3] != LibraryVersion {
					t.Errorf("%s pins %s, want %s", fields[2], fields[3], LibraryVersion)
				}
			}
		}
	}
	if lines == 0 {
		t.Error("the script pins nothing")
	}
}
