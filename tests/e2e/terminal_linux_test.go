//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// openTerminal opens a pseudo terminal: what is written to one end is typed at the other.
func openTerminal(t *testing.T) (terminal, shell *os.File) {
	t.Helper()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("optional: there are no pseudo terminals here: %v", err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	if err := unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	shell, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return terminal, shell
}

// transcript is what a terminal has shown.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *transcript) read(terminal *os.File) {
	buffer := make([]byte, 4096)
	for {
		n, err := terminal.Read(buffer)
		s.mu.Lock()
		s.text.Write(buffer[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// String returns all that was shown so far.
func (s *transcript) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}
