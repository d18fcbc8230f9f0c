package daemon

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progressEvery is the time between the lines of a progress that is not shown on a terminal.
const progressEvery = 10 * time.Second

// Progress shows how far a long piece of work has come: as a bar on a terminal, otherwise as a
// line every 10 s (while Add is called). Its methods may be called concurrently.
type Progress struct {
	mu    sync.Mutex
	bar   *progressbar.ProgressBar // nil: lines
	w     io.Writer
	what  string
	total int64
	done  int64
	began time.Time
	shown time.Time
}

// NewProgress shows progress on w, which is normally os.Stderr, under the name `what` ("events").
// A total below 0 means that the amount of work is unknown.
func NewProgress(w io.Writer, what string, total int64) *Progress {
	now := time.Now()
	p := &Progress{w: w, what: what, total: total, began: now, shown: now}
	if Terminal(w) {
		p.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(w),
			progressbar.OptionSetDescription(what),
			progressbar.OptionEnableColorCodes(Colors(w)),
			progressbar.OptionShowCount(),
			progressbar.OptionShowIts(),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionFullWidth(),
		)
	}
	return p
}

// Add counts n more pieces of work as done. What cannot be shown is not an error: the work matters.
func (p *Progress) Add(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	if p.bar != nil {
		_ = p.bar.Add64(n)
		return
	}
	if now := time.Now(); now.Sub(p.shown) >= progressEvery {
		p.shown = now
		p.line(now)
	}
}

// Close ends the display and leaves what was done on it.
func (p *Progress) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Exit()
		_, _ = fmt.Fprintln(p.w)
		return
	}
	p.line(time.Now())
}

// line prints the state as one line.
func (p *Progress) line(now time.Time) {
	elapsed := now.Sub(p.began).Round(100 * time.Millisecond)
	rate := "-"
	if seconds := now.Sub(p.began).Seconds(); seconds > 0 {
		rate = fmt.Sprintf("%.0f", float64(p.done)/seconds)
	}
	if p.total >= 0 {
		_, _ = fmt.Fprintf(p.w, "%s: %d of %d in %s, %s/s\n",
			p.what, p.done, p.total, elapsed, rate)
		return
	}
	_, _ = fmt.Fprintf(p.w, "%s: %d in %s, %s/s\n", p.what, p.done, elapsed, rate)
}

// Terminal reports whether w is a terminal that a person looks at.
func Terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Colors reports whether w is a terminal that wants colours: NO_COLOR is unset and TERM not dumb.
func Colors(w io.Writer) bool {
	return Terminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
