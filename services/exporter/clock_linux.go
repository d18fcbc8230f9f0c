package exporter

import (
	"bytes"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/suanpan/suanpan/services/exporter/session"
)

// NodeClock tells the time by the clock that counts since boot, through sleep, and by the wall
// clock.
func NodeClock() session.Instant {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic("BUG: no clock counts since boot: " + err.Error()) // Linux has had it since 2.6.39
	}
	return session.Instant{Mono: time.Duration(t.Nano()), Wall: time.Now().Round(0)}
}

// NodeBoot names the node's boot.
func NodeBoot() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	return string(bytes.TrimSpace(id)), nil
}
