package daemon

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestProgress_printsALineEveryTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := NewProgress(&out, "events", 250)
		for range 25 { // a step a second
			time.Sleep(time.Second)
			p.Add(10)
		}
		p.Close()
		want := "events: 100 of 250 in 10s, 10/s\n" +
			"events: 200 of 250 in 20s, 10/s\n" +
			"events: 250 of 250 in 25s, 10/s\n"
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
	})
}

func TestProgress_unknownTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := NewProgress(&out, "events", -1)
		p.Add(10)
		p.Close()
		if got := out.String(); got != "events: 10 in 0s, -/s\n" {
			t.Errorf("got %q", got)
		}
	})
}

func TestTerminal_filesAndBuffersAreNone(t *testing.T) {
	file, err := os.Create(write(t, "out", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if Terminal(file) || Terminal(&strings.Builder{}) || Colors(file) {
		t.Error("a file or a buffer passes for a terminal")
	}
}
