package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// settings is what the command of these tests can be given.
type settings struct {
	Kafka string
	Rows  int
	Wait  time.Duration
	Topic []string
}

// execute runs `suanpan rater args...` with a file of the given text (none if empty) and returns
// what the command was given.
func execute(t *testing.T, file string, args ...string) (settings, Secret, error) {
	t.Helper()
	var got settings
	var password Secret
	root := &cobra.Command{
		Use: "suanpan", SilenceErrors: true, SilenceUsage: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return Bind(cmd) },
	}
	AddConfigFlag(root.PersistentFlags())
	rater := &cobra.Command{Use: "rater", RunE: func(*cobra.Command, []string) error { return nil }}
	rater.Flags().StringVar(&got.Kafka, "kafka", "localhost:9092", "")
	rater.Flags().IntVar(&got.Rows, "flush-rows", 50000, "")
	rater.Flags().DurationVar(&got.Wait, "wait", time.Second, "")
	rater.Flags().StringSliceVar(&got.Topic, "topic", []string{"default"}, "")
	SecretVar(rater.Flags(), &password, "password", "password of the store")
	other := &cobra.Command{Use: "archiver", RunE: rater.RunE}
	other.Flags().String("archive-rows", "", "")
	root.AddCommand(rater, other)
	if file != "" {
		args = append(args, "--config", write(t, "suanpan.yaml", file))
	}
	root.SetArgs(append([]string{"rater"}, args...))
	err := root.ExecuteContext(t.Context())
	return got, password, err
}

// write makes a file of a test's own.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBind_precedence(t *testing.T) {
	defaults := settings{"localhost:9092", 50000, time.Second, []string{"default"}}
	f := func(file, env string, args []string, change func(*settings)) {
		t.Helper()
		t.Setenv("SUANPAN_FLUSH_ROWS", env)
		want := defaults
		change(&want)
		got, _, err := execute(t, file, args...)
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("file %q, env %q, args %q (-want +got):\n%s", file, env, args, diff)
		}
	}
	rows := func(n int) func(*settings) { return func(s *settings) { s.Rows = n } }
	f("", "", nil, rows(50000))
	f("flush-rows: 1", "", nil, rows(1))
	f("flush-rows: 1", "2", nil, rows(2))
	f("flush-rows: 1", "2", []string{"--flush-rows=3"}, rows(3))
	f("", "2", []string{"--flush-rows=50000"}, rows(50000)) // given, though it is the default
	f("# nothing\n", "", nil, rows(50000))
	f("---\nwait: 5m\nkafka: a:1,b:2\n", "", nil, func(s *settings) {
		s.Wait, s.Kafka = 5*time.Minute, "a:1,b:2"
	})
	f("topic: [a, b]", "", nil, func(s *settings) { s.Topic = []string{"a", "b"} })
	f("topic: a", "", nil, func(s *settings) { s.Topic = []string{"a"} })
	f("topic: [a, b]", "", []string{"--topic=c"}, func(s *settings) { s.Topic = []string{"c"} })
	f("archive-rows: 7", "", nil, rows(50000)) // a setting of another command
}

func TestBind_errorsNameTheirPlace(t *testing.T) {
	f := func(file string, want ...string) {
		t.Helper()
		_, _, err := execute(t, file)
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("file %q: got error %v, want %q in it", file, err, w)
			}
		}
	}
	f("kafka: a\nflush-row: 1\n", `suanpan.yaml:2: unknown setting "flush-row"`,
		`did you mean "flush-rows"?`)
	f("a: 1\nb: 2\n", `suanpan.yaml:1: unknown setting "a"`, `suanpan.yaml:2: unknown setting "b"`)
	f("\nflush-rows: many\n", "suanpan.yaml:2: ", `invalid argument "many"`, "--flush-rows")
	f("kafka: a\nkafka: b\n", `suanpan.yaml:2: "kafka" is set on line 1 already`)
	f("kafka: {a: b}\n", "suanpan.yaml:1: kafka: neither a value nor a list of values")
	f("kafka:\n", "suanpan.yaml:1: kafka: neither")
	f("kafka: [a, b]\n", "suanpan.yaml:1: set kafka: a list of 2 values")
	f("- kafka\n", "suanpan.yaml:1: not a mapping")
	f("kafka: a\n---\nkafka: b\n", "more than one document")
	f("kafka: [\n", "read config ", "line 1")
	f("config: other.yaml\n", `suanpan.yaml:1: unknown setting "config"`)
	f("help: true\n", `unknown setting "help"`)
	f("password: hunter2\n", `"password" is a secret`, "password-file", "SUANPAN_PASSWORD")
	f("password-file: nowhere\n", "suanpan.yaml:1: ", "--password-file", "open nowhere")
	f(strings.Repeat("# long\n", maxConfigBytes/7+1), "larger than")
	if _, _, err := execute(t, "", "--config", "nowhere.yaml"); err == nil {
		t.Error("a missing file was accepted")
	}
	t.Setenv("SUANPAN_FLUSH_ROWS", "many")
	f("", "read environment variable SUANPAN_FLUSH_ROWS", `invalid argument "many"`)
}

func TestBind_configFileFromEnvironment(t *testing.T) {
	t.Setenv("SUANPAN_CONFIG", write(t, "env.yaml", "flush-rows: 9"))
	got, _, err := execute(t, "")
	if err != nil || got.Rows != 9 {
		t.Errorf("got %d rows and error %v, want 9", got.Rows, err)
	}
}

func TestBind_secrets(t *testing.T) {
	f := func(file, env string, args []string, want string) {
		t.Helper()
		t.Setenv("SUANPAN_PASSWORD", env)
		_, got, err := execute(t, file, args...)
		if err != nil || got.Reveal() != want {
			t.Errorf("got %q and error %v, want %q", got.Reveal(), err, want)
		}
	}
	one, two := write(t, "one", "first\n"), write(t, "two", "second")
	f("", "", nil, "")
	f("", "plain", nil, "plain")
	f("", "plain", []string{"--password-file", one}, "first")
	f("password-file: "+two, "", nil, "second")
	f("password-file: "+two, "plain", nil, "plain")
	t.Setenv("SUANPAN_PASSWORD_FILE", one)
	f("password-file: "+two, "", nil, "first")

	if _, _, err := execute(t, "", "--password-file", write(t, "empty", "\n")); err == nil {
		t.Error("an empty secret was accepted")
	}
	if _, _, err := execute(t, "", "--password=x"); err == nil {
		t.Error("a secret was accepted on the command line")
	}
}

func TestSecret_isNeverShown(t *testing.T) {
	s := NewSecret("hunter2")
	var log strings.Builder
	logger, err := LogOptions{Format: "json", Level: "info"}.New(&log)
	if err != nil {
		t.Fatal(err)
	}
	logger.Info("connect", "password", s, "struct", struct{ P Secret }{s})
	text, err := s.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	shown := log.String() + string(text) +
		fmt.Sprintf("%v %s %+v %#v %q %v", s, s, s, s, s, struct{ P Secret }{s})
	if strings.Contains(shown, "hunter2") {
		t.Errorf("the secret is shown: %s", shown)
	}
	if !strings.Contains(log.String(), `"password":"(secret)"`) {
		t.Errorf("the log does not say that there is a secret: %s", log.String())
	}
}

func TestEnvName(t *testing.T) {
	if got := EnvName("clickhouse-password"); got != "SUANPAN_CLICKHOUSE_PASSWORD" {
		t.Error(got)
	}
}

func FuzzParseSettings(f *testing.F) {
	f.Add("kafka: a\nrows: [1, 2]\n")
	f.Add("a: &x 1\nb: *x\n")
	f.Add("? [a]\n: b\n")
	f.Add("--- !!map\n{}\n...\n")
	f.Fuzz(func(t *testing.T, text string) {
		settings, err := parseSettings("f", []byte(text)) // must not panic
		seen := map[string]bool{}
		for _, s := range settings {
			if err == nil && seen[s.name] {
				t.Errorf("%q twice, and no error", s.name)
			}
			seen[s.name] = true
		}
	})
}
