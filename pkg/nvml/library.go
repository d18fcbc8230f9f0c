//go:build cgo && linux

package nvml

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// The library's functions are looked up when they are called: that is what lets a program start
// where there is none. Some systems' C compilers look all of them up at the start; programs are to
// be linked with -ldflags=-extldflags=-Wl,-z,lazy there, which cgo does not let a package ask for.

// rescanDefault is how often the library is started anew to see GPUs that were plugged in: a start
// takes about a tenth of a second per GPU, and they are not plugged in often.
const rescanDefault = 10 * time.Minute

// eventsMost bounds the events that are taken at a time; the rest waits in the driver.
const eventsMost = 64

// Library is NVIDIA's management library in this process. It starts the library when it is first
// needed and again after the driver restarted. It may be used from several goroutines; calls wait
// for each other. Programs have one: the C library is shared by all of a process anyway.
type Library struct {
	// Rescan is how often Devices starts the library anew, to see GPUs that were plugged in or that
	// came back after a reset; 10 minutes after Open. It must not be changed after first use.
	Rescan time.Duration

	mu      sync.Mutex
	api     nvml.Interface
	started time.Time // zero: it must be started
	broken  bool      // a GPU was lost since: start anew when Devices is next called, but not often
	driver  string
	symbols map[string]bool        // function -> the library has it
	handles map[string]handle      // by UUID
	cards   map[nvml.Device]string // GPUs' UUIDs since the start, also of those lost since
	xids    nvml.EventSet          // nil: the driver has no events
	get     nvml.GpmMetricsGetType // of any device, one after the other: it is large
}

// handle is what the library needs to reach a device. It is dead when the driver restarts, and when
// a MIG device is destroyed.
type handle struct {
	device Device
	self   nvml.Device
	card   nvml.Device // the GPU itself, also of a MIG device
	gpm    *activity   // nil: the chip has no such counters
}

// Open loads the library: that of the path, or the system's where it is "". It fails, with
// ErrUnavailable, only where there is none: a driver that is not loaded yet is what Devices says.
func Open(path string) (*Library, error) {
	if path != "" {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("open nvml: %w: %w", ErrUnavailable, err)
		}
	}
	var options []nvml.LibraryOption
	if path != "" {
		options = append(options, nvml.WithLibraryPath(path))
	}
	l := open(nvml.New(options...))
	if err := l.start(); err != nil && errors.Is(err, ErrUnavailable) {
		return nil, fmt.Errorf("open nvml: %w", err)
	}
	return l, nil
}

// open wraps an interface, be it the library or a mock.
func open(api nvml.Interface) *Library {
	return &Library{Rescan: rescanDefault, api: api}
}

// Driver is the driver's version, "590.48.01", or "" while it does not answer.
func (l *Library) Driver() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.driver
}

// Close stops the library. Calls of Devices start it again.
func (l *Library) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.started.IsZero() {
		return nil
	}
	if ret := l.stop(); ret != nvml.SUCCESS {
		return fmt.Errorf("stop nvml: %w", ret)
	}
	return nil
}

// start initialises the library.
func (l *Library) start() error {
	switch ret := l.api.Init(); ret {
	case nvml.SUCCESS:
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return fmt.Errorf("start nvml: %w: no libnvidia-ml.so.1 (is the driver installed, and "+
			"given to this container?)", ErrUnavailable)
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return fmt.Errorf("start nvml: %w: %w", ErrReplaced, ret)
	default:
		return fmt.Errorf("start nvml: %w: %w", ErrDriver, ret)
	}
	l.started, l.broken = time.Now(), false
	l.handles, l.symbols = map[string]handle{}, map[string]bool{}
	l.cards = map[nvml.Device]string{}
	l.driver, _ = l.api.SystemGetDriverVersion() // "" where it is not told
	l.xids = nil
	if l.has("nvmlEventSetCreate") {
		if set, ret := l.api.EventSetCreate(); ret == nvml.SUCCESS {
			l.xids = set
		}
	}
	return nil
}

// stop ends what start began. Whatever the library says, all handles are dead.
func (l *Library) stop() nvml.Return {
	for _, h := range l.handles {
		h.gpm.free()
	}
	if l.xids != nil {
		_ = l.xids.Free() // Shutdown frees it, too
	}
	l.started, l.handles, l.xids, l.driver = time.Time{}, nil, nil, ""
	return l.api.Shutdown()
}

// has reports whether the library has a function. One that calls what is not there ends the
// process: older drivers lack what newer ones have.
func (l *Library) has(symbol string) bool {
	known, ok := l.symbols[symbol]
	if !ok {
		known = l.api.Extensions().LookupSymbol(symbol) == nil
		l.symbols[symbol] = known
	}
	return known
}

// fail turns what a call returned into an error, and lets go of the library where the driver is
// away. nil for success.
func (l *Library) fail(what string, ret nvml.Return) error {
	var kind error
	away := false
	switch ret {
	case nvml.SUCCESS:
		return nil
	case nvml.ERROR_GPU_IS_LOST, nvml.ERROR_RESET_REQUIRED:
		kind, l.broken = ErrLost, true
	case nvml.ERROR_UNINITIALIZED, nvml.ERROR_DRIVER_NOT_LOADED, nvml.ERROR_UNKNOWN:
		kind, away = ErrDriver, true
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		kind, away = ErrReplaced, true
	case nvml.ERROR_INVALID_ARGUMENT, nvml.ERROR_NOT_FOUND:
		kind = ErrGone
	default:
		return fmt.Errorf("%s: %w", what, ret)
	}
	err := fmt.Errorf("%s: %w: %w", what, kind, ret)
	if away {
		_ = l.stop() // as far as that goes
	}
	return err
}

// text is a fixed C string of NVML's structures.
func text(chars []int8) string {
	b := make([]byte, 0, len(chars))
	for _, c := range chars {
		if c == 0 {
			break
		}
		b = append(b, byte(c))
	}
	return string(b)
}
