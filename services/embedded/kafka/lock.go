package kafka

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockDir makes sure that no other process uses the directory. The lock goes with the file, also
// when the process dies.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close() // nothing was written
		return nil, fmt.Errorf("lock %s, which another broker may be using: %w", dir, err)
	}
	return f, nil
}
