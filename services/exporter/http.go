package exporter

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/suanpan/suanpan/services/exporter/lease"
	"github.com/suanpan/suanpan/services/exporter/session"
)

// bodyBytes bounds the body of a request.
const bodyBytes = 1 << 20

// LeaseView is a session as GET /v1/leases shows it.
type LeaseView struct {
	Lease    string            `json:"lease"`
	Tenant   string            `json:"tenant"`
	Project  string            `json:"project"`
	Session  string            `json:"session"`
	Source   string            `json:"source"`
	Held     map[string]string `json:"held"`
	Devices  []string          `json:"devices"`
	Since    time.Time         `json:"since"`
	Reported time.Time         `json:"reported"` // until when usage is stored
	Purchase string            `json:"purchase"`
	Region   string            `json:"region,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Resumed  bool              `json:"resumed,omitempty"`
}

// viewOf shows a session.
func viewOf(s *session.Session) LeaseView {
	v := LeaseView{
		Lease: s.Lease, Tenant: s.Tenant, Project: s.Project, Session: s.ID, Source: s.Source,
		Held: make(map[string]string, len(s.Held)), Devices: []string{}, Since: s.Since(),
		Reported: time.Unix(0, s.Covered).UTC(), Purchase: s.Purchase, Region: s.Region,
		Labels: s.Labels, Resumed: s.Resumed,
	}
	for sku, milli := range s.Held {
		v.Held[sku] = session.FormatMilli(milli)
	}
	for _, d := range s.Devices {
		v.Devices = append(v.Devices, d.UUID)
	}
	return v
}

// Leases answers GET /v1/leases with all sessions that go on.
func (e *Exporter) Leases() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		views := []LeaseView{}
		for _, s := range e.Sessions() {
			views = append(views, viewOf(&s))
		}
		answer(w, http.StatusOK, map[string]any{"leases": views})
	})
}

// API answers requests for leases:
//
//	GET  /v1/leases       the sessions that go on
//	POST /v1/leases       begin a lease, or change it; the body is a lease.Document
//	POST /v1/leases/end   end a lease: {"lease": ..., "tenant": ..., "at": ...}; the last two may
//	                      be left out
//
// Whoever can reach it decides who is billed: it belongs on a socket that only root can open, or
// behind a token.
func (e *Exporter) API(requests *lease.Requests) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /v1/leases", e.Leases())
	mux.HandleFunc("POST /v1/leases", func(w http.ResponseWriter, r *http.Request) {
		var d lease.Document
		if err := decode(w, r, &d); err != nil {
			refuse(w, err)
			return
		}
		l, err := requests.Start(d)
		if err != nil {
			refuse(w, err)
			return
		}
		e.after(r.Context(), requests)
		status, view := http.StatusAccepted, LeaseView{ // its devices are not there yet
			Lease: l.Lease, Tenant: l.Tenant, Project: l.Project, Purchase: l.Purchase, Since: l.Start,
		}
		for _, s := range e.Sessions() {
			if s.Source == requests.Name() && s.Key == l.Key {
				status, view = http.StatusOK, viewOf(&s)
			}
		}
		answer(w, status, view)
	})
	mux.HandleFunc("POST /v1/leases/end", func(w http.ResponseWriter, r *http.Request) {
		var end struct {
			Lease  string    `json:"lease"`
			Tenant string    `json:"tenant"`
			At     time.Time `json:"at"`
		}
		err := decode(w, r, &end)
		if err == nil && end.Tenant == "" {
			end.Tenant, err = requests.Tenant(end.Lease)
		}
		if err == nil {
			err = requests.End(end.Tenant, end.Lease, end.At)
		}
		if err != nil {
			refuse(w, err)
			return
		}
		e.after(r.Context(), requests)
		answer(w, http.StatusOK, map[string]string{"lease": end.Lease, "tenant": end.Tenant})
	})
	return mux
}

// after lets a request count at once. What fails here is repeated by the loops: the request itself
// is on disk.
func (e *Exporter) after(ctx context.Context, requests *lease.Requests) {
	if err := e.Poll(ctx, requests); err != nil {
		return
	}
	_ = e.Report(false) // it logs its errors
}

// Guard lets only those through who have the token. Without a token, it lets nobody.
func Guard(token string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if token == "" || !ok || subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
			problem(w, http.StatusForbidden,
				"leases are begun and ended on the unix socket, or with the token")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// decode reads the body of a request, strictly.
func decode(w http.ResponseWriter, r *http.Request, to any) error {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyBytes))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(to); err != nil {
		return fmt.Errorf("%w: read body: %w", lease.ErrInvalid, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: read body: more than one object", lease.ErrInvalid)
	}
	return nil
}

// refuse says why a request is not granted.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusServiceUnavailable
	switch {
	case errors.Is(err, lease.ErrInvalid):
		status = http.StatusBadRequest
	case errors.Is(err, lease.ErrUnknown):
		status = http.StatusNotFound
	case errors.Is(err, lease.ErrTooMany):
		status = http.StatusInsufficientStorage
	}
	problem(w, status, err.Error())
}

// problem answers with an error as RFC 9457 has it.
func problem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"title": http.StatusText(status), "status": status, "detail": detail,
	})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // who asked has gone
}
