package daemon

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestLogOptions_formatsAndLevels(t *testing.T) {
	f := func(args, want string) {
		t.Helper()
		var o LogOptions
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		o.Register(flags)
		if err := flags.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		log, err := o.New(&out)
		if err != nil {
			t.Fatal(err)
		}
		log.Debug("quiet")
		log.Info("plain", "rows", 2)
		log.Error("loud")
		if got := out.String(); !strings.Contains(got, want) ||
			strings.Contains(got, "quiet") != strings.Contains(args, "debug") ||
			strings.Contains(got, "plain") == strings.Contains(args, "error") {
			t.Errorf("%s logged:\n%s", args, got)
		}
	}
	f("", `level=INFO msg=plain rows=2`)
	f("--log-format=json", `"msg":"plain","rows":2`)
	f("--log-level=debug", `level=DEBUG msg=quiet`)
	f("--log-level=error", `level=ERROR msg=loud`)
}

func TestLogOptions_refusesOthers(t *testing.T) {
	for _, o := range []LogOptions{
		{Format: "xml", Level: "info"},
		{Format: "text", Level: "loud"},
		{Format: "text", Level: "info+2"},
		{},
	} {
		if _, err := o.New(&strings.Builder{}); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}
