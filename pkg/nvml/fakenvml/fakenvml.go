// Package fakenvml stands in for NVIDIA's driver on machines without a GPU: a small
// libnvidia-ml.so.1 in C, built from lib with the machine's C compiler, which tells what a script
// says. A test changes the script while programs run: values over time, errors, lost GPUs, MIG
// devices that come and go, restarts of the driver. It is for tests and benchmarks only.
//
// The script is text, a thing a line, written by Script.Write and named by the environment variable
// of Env in the programs that load the library:
//
//	driver 590.48.01
//	boot 1                     # another number: the driver was restarted
//	epoch 1764565200           # when it was, Unix seconds: counters count from there
//	down driver_not_loaded     # no call succeeds while this is there
//	gpu uuid=GPU-1 name="NVIDIA H100 80GB HBM3" mem_mib=81559 util=10,50,90 energy_mj=5+300000
//	gpu uuid=GPU-2 name="NVIDIA H100 80GB HBM3" fail=gpu_is_lost
//	mig parent=GPU-1 uuid=MIG-1 index=0 gi=7 ci=0 mem_mib=9984
//	process device=GPU-1 pid=4711 name=/usr/bin/train mib=1024
//	xid seq=1 device=GPU-1 code=79
//
// A number is "42", or "10,20,30" (the next one each second, over and over), or "100+7" (7 more
// each second since epoch). A device supports only what its line has. A GPU that is added is seen
// at the next start of the library, as with NVML; one that is removed is lost.
package fakenvml

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Env is the environment variable that names the script to the library.
const Env = "SUANPAN_FAKE_NVML"

// ErrNoCompiler means that the library cannot be built: there is no C compiler.
var ErrNoCompiler = errors.New("no C compiler (install gcc)")

//go:embed lib/nvml.c lib/script.h
var sources embed.FS

// Values are what a device tells, by the names of the script: "util" to "86", say. MIG devices and
// GPUs have the same names: mem_mib, used_mib, reserved_mib, util, mem_util, temp, mem_temp,
// power_mw, limit_mw, energy_mj, sm_mhz, mem_mhz, throttle (bits), replays, ecc_corrected,
// ecc_uncorrected (both also with _ever), remapped_corrected, remapped_uncorrected,
// remapped_pending, remapped_failed, serial, bus, gpm (1: it has activity counters), gpm_graphics,
// gpm_sm, gpm_occupancy, gpm_tensor, gpm_dram (percent), gpu_slices, compute_slices, and fail (the
// error of every call: gpu_is_lost, reset_required, unknown, ...).
type Values map[string]string

// GPU is a GPU with its MIG devices.
type GPU struct {
	UUID, Name string
	Values     Values
	Parts      []Part // not nil: the GPU is in MIG mode
	Processes  []Process
}

// Part is a MIG device.
type Part struct {
	UUID      string
	Profile   string // "1g.10gb"
	Index     int    // among the GPU's MIG devices
	GI, CI    int    // GPU instance, compute instance
	Values    Values
	Processes []Process
}

// Process uses a device.
type Process struct {
	PID  int
	Name string
	MiB  int // -1: not told
}

// XID is a fault that the driver reports once, when Seq is greater than all it has reported.
type XID struct {
	Seq    int
	Device string // UUID of a GPU
	Code   int
	GI, CI int // of the MIG device that it is about; both 0: of none
}

// Script is what the library tells.
type Script struct {
	Driver string
	Boot   int       // another number: the driver was restarted
	Epoch  time.Time // when it started; zero: when a program first does
	Down   string    // the error of every call, "driver_not_loaded"; "": there is none
	GPUs   []GPU
	XIDs   []XID
}

// Text is the script as the library reads it.
func (s *Script) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "driver %s\nboot %d\n", s.Driver, s.Boot)
	if !s.Epoch.IsZero() {
		fmt.Fprintf(&b, "epoch %.3f\n", float64(s.Epoch.UnixMilli())/1000)
	}
	if s.Down != "" {
		fmt.Fprintf(&b, "down %s\n", s.Down)
	}
	for _, g := range s.GPUs {
		fmt.Fprintf(&b, "gpu uuid=%s name=%q", g.UUID, g.Name)
		if g.Parts != nil {
			b.WriteString(" mig=1")
		}
		g.Values.write(&b)
		writeProcesses(&b, g.UUID, g.Processes)
		for _, p := range g.Parts {
			fmt.Fprintf(&b, "mig uuid=%s parent=%s name=%q index=%d gi=%d ci=%d", p.UUID, g.UUID,
				g.Name+" MIG "+p.Profile, p.Index, p.GI, p.CI)
			p.Values.write(&b)
			writeProcesses(&b, p.UUID, p.Processes)
		}
	}
	for _, x := range s.XIDs {
		fmt.Fprintf(&b, "xid seq=%d device=%s code=%d", x.Seq, x.Device, x.Code)
		if x.GI != 0 || x.CI != 0 {
			fmt.Fprintf(&b, " gi=%d ci=%d", x.GI, x.CI)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// write appends the values and ends the line.
func (v Values) write(b *strings.Builder) {
	for _, key := range slices.Sorted(maps.Keys(v)) {
		fmt.Fprintf(b, " %s=%s", key, v[key])
	}
	b.WriteByte('\n')
}

func writeProcesses(b *strings.Builder, uuid string, processes []Process) {
	for _, p := range processes {
		fmt.Fprintf(b, "process device=%s pid=%d name=%q", uuid, p.PID, p.Name)
		if p.MiB >= 0 {
			fmt.Fprintf(b, " mib=%d", p.MiB)
		}
		b.WriteByte('\n')
	}
}

// writes orders all scripts that this process writes.
var writes struct {
	sync.Mutex
	last time.Time
}

// Write puts the script into a file, whole: a program that reads it meanwhile sees the old one or
// the new one, and the next call of the library sees the new one.
func (s *Script) Write(path string) error {
	writes.Lock()
	defer writes.Unlock()
	file := path + ".new"
	if err := os.WriteFile(file, []byte(s.Text()), 0o600); err != nil {
		return fmt.Errorf("write script: %w", err)
	}
	// File systems have coarse clocks; the library sees by the time that the script is another.
	stamp := time.Now()
	if !stamp.After(writes.last) {
		stamp = writes.last.Add(time.Microsecond)
	}
	writes.last = stamp
	if err := os.Chtimes(file, stamp, stamp); err != nil {
		return fmt.Errorf("write script: %w", err)
	}
	if err := os.Rename(file, path); err != nil {
		return fmt.Errorf("write script: %w", err)
	}
	return nil
}

// Build builds the library once per version of its source and returns its path. A test that cannot
// have it is skipped, and says why.
func Build(tb testing.TB) string {
	tb.Helper()
	path, err := Compile(tb.Context())
	if errors.Is(err, ErrNoCompiler) {
		tb.Skipf("no fake GPUs here: %v", err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// Compile is Build outside of tests. Flags are for the compiler; -DOLD_DRIVER makes a library that
// lacks what drivers of 2021 lack. Libraries are kept in the user's cache.
func Compile(ctx context.Context, flags ...string) (string, error) {
	compiler, err := exec.LookPath("gcc")
	if err != nil {
		compiler, err = exec.LookPath("cc")
	}
	if err != nil {
		return "", fmt.Errorf("build the fake library: %w", ErrNoCompiler)
	}
	header, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/NVIDIA/go-nvml").Output()
	if err != nil {
		return "", fmt.Errorf("find NVML's header: %w", err)
	}
	include := filepath.Join(strings.TrimSpace(string(header)), "pkg", "nvml")
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a folder for the fake library: %w", err)
	}
	sum := sha256.New()
	fmt.Fprintln(sum, include, flags)
	names := []string{"nvml.c", "script.h"}
	for _, name := range names {
		text, err := fs.ReadFile(sources, "lib/"+name)
		if err != nil {
			panic("BUG: embedded: " + err.Error())
		}
		_, _ = sum.Write(text) // it never fails
	}
	dir := filepath.Join(cache, "suanpan", "fakenvml-"+hex.EncodeToString(sum.Sum(nil)[:8]))
	library := filepath.Join(dir, "libnvidia-ml.so.1")
	if _, err := os.Stat(library); err == nil {
		return library, nil
	}
	return library, compile(ctx, compiler, dir, library, names,
		append([]string{"-I", include}, flags...))
}

// compile builds a library into a folder. Several processes may do so at a time.
func compile(ctx context.Context, compiler, dir, library string, names, flags []string) error {
	work, err := os.MkdirTemp("", "fakenvml-*")
	if err != nil {
		return fmt.Errorf("build the fake library: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	for _, name := range names {
		text, _ := fs.ReadFile(sources, "lib/"+name) // it was read before
		if err := os.WriteFile(filepath.Join(work, name), text, 0o600); err != nil {
			return fmt.Errorf("build the fake library: %w", err)
		}
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("build the fake library: %w", err)
	}
	built := library + "." + strconv.Itoa(os.Getpid())
	args := []string{
		"-DNVML_NO_UNVERSIONED_FUNC_DEFS=1", "-Wno-deprecated-declarations", "-O2", "-shared",
		"-fPIC", "-pthread", "-o", built,
	}
	command := exec.CommandContext(ctx, compiler, append(append(args, flags...),
		filepath.Join(work, "nvml.c"))...)
	if text, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build the fake library: %w\n%s", err, text)
	}
	if err := os.Rename(built, library); err != nil {
		return fmt.Errorf("build the fake library: %w", err)
	}
	return nil
}
