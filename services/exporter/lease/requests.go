package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"time"
)

const (
	requestsMost = 4096        // leases that are kept
	endedFor     = time.Hour   // for which an ended lease is told
	futureMost   = time.Minute // by which a clock of the platform may be ahead
)

// Errors of requests, which callers tell apart with errors.Is.
var (
	// ErrInvalid means that the request is wrong, and stays wrong.
	ErrInvalid = errors.New("invalid lease")
	// ErrUnknown means that there is no such lease, or that it has ended.
	ErrUnknown = errors.New("no such lease")
	// ErrTooMany means that there is no room for another lease.
	ErrTooMany = errors.New("too many leases")
)

// Requests is a source of leases that somebody asks for. They are kept in a file, and a request
// that was granted is on disk. A lease holds until its end is asked for, through restarts of the
// node, too. Its methods may be called concurrently.
type Requests struct {
	path string
	now  func() time.Time

	mu      sync.Mutex
	entries []request // in the order in which they began
}

// request is a lease that was asked for.
type request struct {
	Document
	Key string `json:"key"`
}

// OpenRequests returns the leases that are kept in a file, which need not be there yet.
func OpenRequests(path string, now func() time.Time) (*Requests, error) {
	r := &Requests{path: path, now: now}
	data, err := readMost(path, fileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &r.entries)
	}
	if err != nil {
		return nil, fmt.Errorf("open requested leases: %w", err)
	}
	return r, nil
}

// Name implements Source.
func (*Requests) Name() string { return "http" }

// Leases implements Source.
func (r *Requests) Leases(context.Context) ([]Lease, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	leases := make([]Lease, 0, len(r.entries))
	for i := range r.entries {
		l, err := r.entries[i].parse()
		if err != nil {
			return nil, fmt.Errorf("read requested lease %.40q: %w", r.entries[i].Lease, err)
		}
		l.Key = r.entries[i].Key
		leases = append(leases, l)
	}
	return leases, nil
}

// Start begins a lease, at its start or now, or changes what a lease that goes on holds. Asking
// twice for the same changes nothing, whatever start it says.
func (r *Requests) Start(d Document) (Lease, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if d.Start.IsZero() {
		d.Start = now
	}
	l, err := d.parse()
	switch {
	case err != nil:
		return l, fmt.Errorf("%w: %w", ErrInvalid, err)
	case !d.End.IsZero():
		return l, fmt.Errorf("%w: its end is asked for when it has come", ErrInvalid)
	case d.Start.After(now.Add(futureMost)):
		return l, fmt.Errorf("%w: it starts %s ahead", ErrInvalid, d.Start.Sub(now))
	}
	entries := r.recent(now)
	e := request{d, key(d.Tenant, d.Lease) + "\x00" + d.Start.UTC().Format(time.RFC3339Nano)}
	if i := live(entries, d.Tenant, d.Lease); i >= 0 {
		e.Key = entries[i].Key
		same := d
		same.Start = entries[i].Start
		if reflect.DeepEqual(same, entries[i].Document) {
			l.Start, l.Key = same.Start, e.Key
			return l, nil
		}
		entries[i] = e
	} else {
		if len(entries) >= requestsMost {
			return l, ErrTooMany
		}
		entries = append(entries, e)
	}
	l.Key = e.Key
	return l, r.save(entries)
}

// End ends a lease at an instant, or now where that is zero. Ending it again changes nothing.
func (r *Requests) End(tenant, lease string, at time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if at.IsZero() {
		at = now
	}
	if at.After(now.Add(futureMost)) {
		return fmt.Errorf("%w: it ends %s ahead", ErrInvalid, at.Sub(now))
	}
	entries := r.recent(now)
	i := live(entries, tenant, lease)
	if i < 0 {
		for _, e := range entries {
			if e.Tenant == tenant && e.Lease == lease {
				return nil
			}
		}
		return fmt.Errorf("%w: %.40q of %.40q", ErrUnknown, lease, tenant)
	}
	entries[i].End = at // before its start, if the clock was set back meanwhile
	return r.save(entries)
}

// Tenant returns who has a lease that goes on. It is for those who know only its name.
func (r *Requests) Tenant(lease string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	tenant := ""
	for _, e := range r.entries {
		if e.Lease != lease {
			continue
		}
		if tenant != "" && tenant != e.Tenant {
			return "", fmt.Errorf("%w: several tenants have a lease %.40q: say which", ErrInvalid, lease)
		}
		tenant = e.Tenant
	}
	if tenant == "" {
		return "", fmt.Errorf("%w: %.40q", ErrUnknown, lease)
	}
	return tenant, nil
}

// live returns where the lease is that goes on, or -1.
func live(entries []request, tenant, lease string) int {
	for i := range entries {
		if e := &entries[i]; e.Tenant == tenant && e.Lease == lease && e.End.IsZero() {
			return i
		}
	}
	return -1
}

// recent returns a copy of the leases, without those that ended long ago.
func (r *Requests) recent(now time.Time) []request {
	var entries []request
	for _, e := range r.entries {
		if e.End.IsZero() || now.Sub(e.End) < endedFor {
			entries = append(entries, e)
		}
	}
	return entries
}

// save puts the leases on disk, and then in the place of those before.
func (r *Requests) save(entries []request) error {
	data, err := json.MarshalIndent(entries, "", " ")
	if err != nil {
		panic("BUG: leases do not marshal: " + err.Error())
	}
	if err := WriteFile(r.path, data); err != nil {
		return fmt.Errorf("save leases: %w", err)
	}
	r.entries = entries
	return nil
}

// WriteFile replaces a file, whole: after a crash it is the old one or the new one.
func WriteFile(path string, data []byte) error {
	temporary := path + ".new"
	f, err := os.OpenFile(temporary, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
