//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// commands are all commands that a user can type.
func commands(t *testing.T) [][]string {
	t.Helper()
	var all [][]string
	var walk func(path []string)
	walk = func(path []string) {
		out, errs, code := try(t, os.Environ(), "", append(append([]string{}, path...), "--help")...)
		if code != 0 || len(out) < 80 || !strings.Contains(out, "Usage:") {
			t.Errorf("suanpan %s --help ended with %d: %s%s", strings.Join(path, " "), code, out, errs)
		}
		all = append(all, path)
		_, list, ok := strings.Cut(out, "Available Commands:")
		if len(path) == 0 {
			list, ok = out, true
		}
		if !ok {
			return
		}
		for _, m := range regexp.MustCompile(`(?m)^  ([a-z]+) +[A-Z]`).FindAllStringSubmatch(list, -1) {
			if m[1] != "help" && m[1] != "completion" {
				walk(append(append([]string{}, path...), m[1]))
			}
		}
	}
	walk(nil)
	return all
}

func TestCommands(t *testing.T) {
	all := commands(t)
	if len(all) < 20 {
		t.Errorf("found only %d commands: %v", len(all), all)
	}
	for _, path := range all {
		args := append(append([]string{}, path...), "--no-such-flag")
		_, errs, code := try(t, os.Environ(), "", args...)
		if code != 2 || !strings.Contains(errs, "--help") {
			t.Errorf("suanpan %s ended with %d: %s", strings.Join(args, " "), code, errs)
		}
	}
}

func TestExitCodes(t *testing.T) {
	f := func(want int, says string, args ...string) {
		t.Helper()
		out, errs, code := try(t, os.Environ(), "", args...)
		if code != want || !strings.Contains(out+errs, says) {
			t.Errorf("suanpan %s ended with %d, want %d and %q: %s%s", strings.Join(args, " "), code, want,
				says, out, errs)
		}
	}
	f(0, "suanpan ", "version")
	f(2, "unknown command", "biil")
	for _, group := range []string{"alert", "budget", "deadletter", "embedded", "export", "invoice"} {
		f(0, "Usage:", group)
		f(2, `unknown command "lst" for "suanpan `+group, group, "lst")
	}
	f(2, "--help", "get")
	f(2, "none of", "get", "budgies")
	f(2, "required flag", "rate", "--events", "-")
	f(1, "no such file", "rate", "--catalog", "nowhere.yaml", "--events", "-")
	f(2, "TOPIC/PARTITION/OFFSET", "deadletter", "show", "what")
	f(2, "say which", "deadletter", "retry")
	f(2, "one of --budget and --policy", "alert", "test")
	f(2, "one of --budget and --policy", "alert", "test", "--budget", "a", "--policy", "b")
	f(2, "accepts 1 arg", "alert", "ack", "--by", "ann")
	f(2, `"by" not set`, "alert", "ack", "KEY")
}

// TestSettings gives settings by environment and by file, and looks for secrets where none may be.
func TestSettings(t *testing.T) {
	s := newSystem(t, "embedded")
	env := append(os.Environ(), "SUANPAN_KAFKA=127.0.0.1:1", // the file is for what is not set here
		"SUANPAN_CLICKHOUSE_PASSWORD=hunter2-secret")
	file := filepath.Join(t.TempDir(), "suanpan.yaml")
	write(t, file, "clickhouse: http://"+s.clickhouse+"/suanpan\nkafka: 127.0.0.1:2\n")
	out, errs, code := try(t, env, "", "deadletter", "list", "--json", "--config", file)
	if code != 0 || out != "" {
		t.Errorf("deadletter list with settings from a file ended with %d: %s%s", code, out, errs)
	}
	write(t, file, "clickhous: x\n")
	_, errs, code = try(t, env, "", "deadletter", "list", "--config", file)
	if code == 0 || !strings.Contains(errs, file+":1") || !strings.Contains(errs, "clickhous") {
		t.Errorf("a setting that is none ended with %d: %s", code, errs)
	}
	for _, args := range [][]string{{"rater", "--help"}, {"deadletter", "list", "--clickhouse", "http://127.0.0.1:1"}} {
		out, errs, _ = try(t, env, "", args...)
		if strings.Contains(out+errs, "hunter2") {
			t.Errorf("suanpan %s shows a password", strings.Join(args, " "))
		}
	}
	var v map[string]string
	out, _, _ = try(t, env, "", "version", "--json")
	if err := json.Unmarshal([]byte(out), &v); err != nil || v["version"] == "" {
		t.Errorf("version --json prints %q: %v", out, err)
	}
}

// TestServe runs everything in one process, as the README says, and ends it.
func TestServe(t *testing.T) {
	if _, err := os.Stat("/proc"); err != nil {
		t.Log("memory is not looked at: there is no /proc")
	}
	s := newSystem(t, "embedded") // its Kafka and ClickHouse are not used
	kafka, clickhouse, admin := freeAddress(t), freeAddress(t), freeAddress(t)
	s.start("serve", admin, "serve", "--data", s.path("all"), "--kafka-listen", kafka,
		"--clickhouse-listen", clickhouse, "--admin", admin, "--flush-live", "300ms",
		"--settle-every", "300ms")
	s.waitReady("serve")
	s.kafka, s.clickhouse = kafka, clickhouse
	s.run("apply", "-f", exampleCatalog)
	s.runWith(held("one")+"\n", "send", "-")
	s.waitRated(1)
	s.waitFor("the spend", func() error {
		got, err := s.query("SELECT tenant, sku, toString(base_quantity), currency " +
			"FROM suanpan.spend_daily FORMAT CSV")
		if err == nil && got != "\"tenant-00\",\"cpu.core\",\"60\",\"CNY\"\n" {
			err = errText(got)
		}
		return err
	})
	if got := get(t, "http://"+admin+"/metrics"); !strings.Contains(got,
		`suanpan_rater_events_total{outcome="accepted"} 1`) {
		t.Error("the metrics do not count the event")
	}
	s.stop("serve")
	s.launchAgain("serve", "serve", "--data", s.path("all"), "--kafka-listen", kafka,
		"--clickhouse-listen", clickhouse, "--admin", admin)
	s.waitReady("serve")
	s.waitRated(1)
	s.stop("serve")
}

// launchAgain starts a service that was stopped, with the same admin server.
func (s *system) launchAgain(name string, args ...string) {
	s.t.Helper()
	admin := ""
	for i, a := range args {
		if a == "--admin" {
			admin = args[i+1]
		}
	}
	s.start(name, admin, args...)
}
