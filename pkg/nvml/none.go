//go:build !cgo || !linux

package nvml

import (
	"fmt"
	"time"
)

// Library is what a program built without cgo has: Open never returns one.
type Library struct {
	// Rescan has no effect.
	Rescan time.Duration
}

// Open returns an error that wraps ErrUnavailable.
func Open(string) (*Library, error) {
	return nil, fmt.Errorf("open nvml: %w: this program was built without cgo (set CGO_ENABLED=1 "+
		"and have a C compiler), or not for Linux", ErrUnavailable)
}

// Driver returns "".
func (l *Library) Driver() string { return "" }

// Devices returns ErrUnavailable.
func (l *Library) Devices() ([]Device, error) { return nil, ErrUnavailable }

// Read returns ErrUnavailable.
func (l *Library) Read(Device) (Reading, error) { return Reading{}, ErrUnavailable }

// Events returns ErrUnavailable.
func (l *Library) Events() ([]Event, error) { return nil, ErrUnavailable }

// Close does nothing.
func (l *Library) Close() error { return nil }
