package clickhouse

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// queueTimeout is how long a statement waits for its turn.
const queueTimeout = 30 * time.Second

// session is what a statement needs of its connection: a database and settings. Connections are
// kept by it, as opening one costs half a millisecond and settings cannot be had by statement.
type session struct {
	database string
	settings map[string]string
}

// key is equal for equal sessions only.
func (s session) key() string {
	names := make([]string, 0, len(s.settings))
	for name := range s.settings {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	fmt.Fprintf(&b, "%q", s.database)
	for _, name := range names {
		fmt.Fprintf(&b, " %s=%q", name, s.settings[name])
	}
	return b.String()
}

// pool lends connections to one engine. It is safe for concurrent use.
type pool struct {
	abi     *abi
	dataDir string
	log     *slog.Logger
	turns   chan struct{} // one for each statement that may run

	defaults map[string]string // settings of every session that does not say otherwise

	mu      sync.Mutex
	idle    []*handle // the last used at the end
	opened  int       // for the names of connections
	control *handle   // keeps the engine alive and kills queries; used under mu
}

// openPool starts the engine with the given configuration file.
func openPool(a *abi, cfg Config, configFile string, log *slog.Logger) (*pool, error) {
	control, err := openHandle(a, "--path="+cfg.DataDir, "--config-file="+configFile)
	if err != nil {
		return nil, fmt.Errorf("%w; is another process using %s?", err, cfg.DataDir)
	}
	if err := control.exec("CREATE DATABASE IF NOT EXISTS default"); err != nil {
		control.close()
		return nil, fmt.Errorf("open engine: %w", err)
	}
	p := &pool{
		abi: a, dataDir: cfg.DataDir, log: log, control: control,
		turns: make(chan struct{}, cfg.MaxQueries), defaults: map[string]string{
			"session_timezone":                   timezone, // whatever zone the machine is in
			"max_memory_usage":                   strconv.FormatInt(cfg.MemoryBytes/4*3, 10),
			"max_bytes_before_external_group_by": strconv.FormatInt(cfg.MemoryBytes/4, 10),
			"max_bytes_before_external_sort":     strconv.FormatInt(cfg.MemoryBytes/4, 10),
		},
	}
	return p, nil
}

// take lends a connection with the session's database and settings. The caller gives it back.
func (p *pool) take(ctx context.Context, s session) (*handle, error) {
	ctx, cancel := context.WithTimeout(ctx, queueTimeout)
	defer cancel()
	select {
	case p.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, newException(codeTooManyQueries, "TOO_MANY_SIMULTANEOUS_QUERIES",
			"Too many simultaneous queries. Maximum: "+strconv.Itoa(cap(p.turns)))
	}
	h, err := p.find(s)
	if err != nil {
		<-p.turns
		return nil, err
	}
	return h, nil
}

func (p *pool) find(s session) (*handle, error) {
	key := s.key()
	p.mu.Lock()
	for i := len(p.idle) - 1; i >= 0; i-- {
		if h := p.idle[i]; h.key == key {
			p.idle = slices.Delete(p.idle, i, i+1)
			p.mu.Unlock()
			return h, nil
		}
	}
	p.opened++
	number := p.opened
	p.mu.Unlock()
	h, err := p.open(s, number)
	if err != nil {
		return nil, err
	}
	h.key = key
	return h, nil
}

// open makes a connection and gives it its database and settings.
func (p *pool) open(s session, number int) (*handle, error) {
	h, err := openHandle(p.abi, "--path="+p.dataDir)
	if err != nil {
		return nil, err
	}
	statements := make([]string, 0, 3)
	if s.database != "" {
		statements = append(statements, "USE "+quoteName(s.database))
	}
	settings := maps.Clone(p.defaults)
	maps.Copy(settings, s.settings)
	delete(settings, "readonly")
	if settings["log_comment"] == "" {
		h.comment = "suanpan-" + strconv.Itoa(number)
		settings["log_comment"] = h.comment
	}
	var sets []string
	for name, value := range settings {
		sets = append(sets, quoteName(name)+" = "+quoteText(value))
	}
	statements = append(statements, "SET "+strings.Join(sets, ", "))
	if value, ok := s.settings["readonly"]; ok { // the last, as nothing can be set after it
		statements = append(statements, "SET readonly = "+quoteText(value))
	}
	for _, statement := range statements {
		if err := h.exec(statement); err != nil {
			h.close()
			return nil, err
		}
	}
	return h, nil
}

// give takes a connection back, to be used again unless it is dirty.
func (p *pool) give(h *handle) {
	defer func() { <-p.turns }()
	if h.dirty {
		h.close()
		return
	}
	p.mu.Lock()
	p.idle = append(p.idle, h)
	var oldest *handle
	if len(p.idle) > 2*cap(p.turns) {
		oldest = p.idle[0]
		p.idle = slices.Delete(p.idle, 0, 1)
	}
	p.mu.Unlock()
	if oldest != nil {
		oldest.close()
	}
}

// kill stops what runs on a connection, if anything does. It returns at once; the statement ends
// with an error some time later.
func (p *pool) kill(h *handle) {
	if h.comment == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.control.exec("KILL QUERY WHERE Settings['log_comment'] = " + quoteText(h.comment) +
		" ASYNC")
	if err != nil {
		p.log.Warn("cannot kill query", "error", err)
	}
}

// close waits until nothing runs, or ctx ends, then stops the engine. When it returns nil all
// that was written is in the data directory, and the directory is free for another process.
func (p *pool) close(ctx context.Context) error {
	for range cap(p.turns) {
		select {
		case p.turns <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("close engine: statements still run: %w", ctx.Err())
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range append(p.idle, p.control) { // closing the last one shuts the engine down
		h.close()
	}
	p.idle = nil
	return nil
}

// quoteName writes an identifier.
func quoteName(name string) string {
	return "`" + strings.NewReplacer("\\", "\\\\", "`", "\\`").Replace(name) + "`"
}

// quoteText writes a string literal.
func quoteText(text string) string {
	return "'" + strings.NewReplacer("\\", "\\\\", "'", "\\'").Replace(text) + "'"
}
