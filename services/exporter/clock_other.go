//go:build !linux

package exporter

import (
	"strconv"
	"time"

	"github.com/suanpan/suanpan/services/exporter/session"
)

var began = time.Now()

// NodeClock tells the time since this process began, and by the wall clock.
func NodeClock() session.Instant {
	now := time.Now()
	return session.Instant{Mono: now.Sub(began), Wall: now.Round(0)}
}

// NodeBoot names this process: only Linux has a clock that goes on without it.
func NodeBoot() (string, error) { return strconv.FormatInt(began.UnixNano(), 10), nil }
