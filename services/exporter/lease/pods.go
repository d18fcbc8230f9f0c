package lease

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// podsBytes bounds a list of the pods of one node.
const podsBytes = 32 << 20

// podsTimeout bounds a request for it.
const podsTimeout = 10 * time.Second

// Pods asks for the pods of this node: the API server, with a field selector, which needs the right
// to list pods and no more; or the kubelet's own /pods, which needs nodes/proxy, or nodes/pods
// where the kubelet knows that. Both answer with the same list.
type Pods struct {
	URL   string // whole, with the field selector
	Token string // file of a bearer token, read each time as it is rotated; "": none
	CA    string // file of authorities in PEM; "": the system's

	client *http.Client
}

// NewPods returns what asks for pods at a URL.
func NewPods(url, token, ca string) (*Pods, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := readMost(ca, 1<<20)
		if err != nil {
			return nil, fmt.Errorf("read authorities: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read authorities: no certificate in %s", ca)
		}
	}
	transport := &http.Transport{TLSClientConfig: config, MaxIdleConns: 1, ForceAttemptHTTP2: true}
	return &Pods{url, token, ca, &http.Client{Transport: transport, Timeout: podsTimeout}}, nil
}

// pod is what is read of a pod.
type pod struct {
	Metadata struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace"`
		UID         string            `json:"uid"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Status struct {
		Phase      string            `json:"phase"`
		Containers []containerStatus `json:"containerStatuses"`
		Init       []containerStatus `json:"initContainerStatuses"`
	} `json:"status"`
}

type containerStatus struct {
	Name      string         `json:"name"`
	State     containerState `json:"state"`
	LastState containerState `json:"lastState"`
}

type containerState struct {
	Running *struct {
		StartedAt time.Time `json:"startedAt"`
	} `json:"running"`
	Terminated *struct {
		StartedAt  time.Time `json:"startedAt"`
		FinishedAt time.Time `json:"finishedAt"`
	} `json:"terminated"`
}

// list returns the pods of this node.
func (p *Pods) list(ctx context.Context) ([]pod, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL, nil)
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	request.Header.Set("Accept", "application/json")
	if p.Token != "" {
		token, err := os.ReadFile(p.Token)
		if err != nil {
			return nil, fmt.Errorf("list pods: %w", err)
		}
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	response, err := p.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("list pods: %s", response.Status)
	}
	var list struct {
		Items []pod `json:"items"`
	}
	body := io.LimitReader(response.Body, podsBytes)
	if err := json.NewDecoder(body).Decode(&list); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	return list.Items, nil
}

// began returns when the first of the named containers began to run; zero: none has.
func (p *pod) began(names map[string]bool) time.Time {
	var first time.Time
	earlier := func(at time.Time) {
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	for _, list := range [][]containerStatus{p.Status.Init, p.Status.Containers} {
		for _, c := range list {
			if !names[c.Name] {
				continue
			}
			for _, s := range []containerState{c.State, c.LastState} {
				if s.Running != nil {
					earlier(s.Running.StartedAt)
				}
				if s.Terminated != nil {
					earlier(s.Terminated.StartedAt)
				}
			}
		}
	}
	return first
}

// ended returns when the last of the named containers ended, if the pod is over.
func (p *pod) ended(names map[string]bool) time.Time {
	var last time.Time
	if p.Status.Phase != "Succeeded" && p.Status.Phase != "Failed" {
		return last
	}
	for _, list := range [][]containerStatus{p.Status.Init, p.Status.Containers} {
		for _, c := range list {
			if t := c.State.Terminated; names[c.Name] && t != nil && t.FinishedAt.After(last) {
				last = t.FinishedAt
			}
		}
	}
	return last
}

// The names of labels and annotations. An annotation stands before a label: it may be any text.
const (
	prefix      = "suanpan.io/"
	labelPrefix = "label.suanpan.io/"
)

// podLabels are the labels of usage that have a name of their own.
var podLabels = map[string]string{
	"team": "team", "model": "model", "model-version": "model_version", "stage": "stage",
}

var errNoTenant = errors.New("no suanpan.io/tenant")

// terms reads the lease that a pod's labels and annotations describe.
func (p *pod) terms() (Lease, error) {
	get := func(name string) string {
		if v, ok := p.Metadata.Annotations[prefix+name]; ok {
			return v
		}
		return p.Metadata.Labels[prefix+name]
	}
	l := Lease{
		Tenant: get("tenant"), Project: get("project"), Lease: get("lease"),
		Purchase: get("purchase"), Region: get("region"), Resumed: get("resumed") == "true",
		Pod: p.Metadata.Name, Namespace: p.Metadata.Namespace, Labels: map[string]string{},
	}
	if l.Tenant == "" {
		return l, errNoTenant
	}
	if l.Project == "" {
		l.Project = p.Metadata.Namespace
	}
	if l.Lease == "" {
		l.Lease = p.Metadata.UID
	}
	for name, label := range podLabels {
		if v := get(name); v != "" {
			l.Labels[label] = v
		}
	}
	for _, texts := range []map[string]string{p.Metadata.Labels, p.Metadata.Annotations} {
		for name, v := range texts {
			if label, ok := strings.CutPrefix(name, labelPrefix); ok {
				l.Labels[label] = v
			}
		}
	}
	for part := range strings.SplitSeq(get("held"), ",") { // cpu.core=16, memory.gib=64
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		sku, amount, _ := strings.Cut(part, "=")
		milli, err := ParseMilli(strings.TrimSpace(amount))
		if err != nil {
			return l, fmt.Errorf("suanpan.io/held: %q: %w", part, err)
		}
		if l.Held == nil {
			l.Held = map[string]int64{}
		}
		l.Held[strings.TrimSpace(sku)] = milli
	}
	return l, nil
}
