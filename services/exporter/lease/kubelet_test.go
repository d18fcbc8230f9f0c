package lease

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// cluster is a kubelet and an API server: a gRPC server on a unix socket, and an HTTP server.
type cluster struct {
	podresources.UnimplementedPodResourcesListerServer
	socket string
	url    string

	mu     sync.Mutex
	held   []*podresources.PodResources
	all    []string // ids of all devices
	pods   []map[string]any
	asked  int // how often for pods
	broken bool
	server *grpc.Server
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	dir, err := os.MkdirTemp("", "kubelet") // paths of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c := &cluster{socket: filepath.Join(dir, "kubelet.sock")}
	c.serve(t)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asked++
		if c.broken || r.Header.Get("Authorization") != "Bearer secret" ||
			r.URL.Query().Get("fieldSelector") != "spec.nodeName=n1" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "PodList", "items": c.pods})
	}))
	t.Cleanup(api.Close)
	c.url = api.URL + "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1"
	return c
}

// serve starts the kubelet.
func (c *cluster) serve(t *testing.T) {
	t.Helper()
	_ = os.Remove(c.socket)
	listener, err := net.Listen("unix", c.socket)
	if err != nil {
		t.Fatal(err)
	}
	c.server = grpc.NewServer()
	podresources.RegisterPodResourcesListerServer(c.server, c)
	go func(s *grpc.Server) { _ = s.Serve(listener) }(c.server) // ends with Stop
	t.Cleanup(c.server.Stop)
}

// List implements the kubelet's API.
func (c *cluster) List(context.Context, *podresources.ListPodResourcesRequest) (
	*podresources.ListPodResourcesResponse, error,
) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &podresources.ListPodResourcesResponse{PodResources: c.held}, nil
}

// GetAllocatableResources implements the kubelet's API.
func (c *cluster) GetAllocatableResources(context.Context,
	*podresources.AllocatableResourcesRequest) (*podresources.AllocatableResourcesResponse, error,
) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &podresources.AllocatableResourcesResponse{Devices: []*podresources.ContainerDevices{
		{ResourceName: "nvidia.com/gpu", DeviceIds: c.all},
		{ResourceName: "example.com/nic", DeviceIds: []string{"GPU-2::0"}},
	}}, nil
}

// give gives devices to a pod.
func (c *cluster) give(name, resource string, ids ...string) {
	c.held = append(c.held, &podresources.PodResources{
		Name: name, Namespace: "ml", Containers: []*podresources.ContainerResources{
			{Name: "sidecar"},
			{Name: "train", Devices: []*podresources.ContainerDevices{
				{ResourceName: resource, DeviceIds: ids},
				{ResourceName: "example.com/nic", DeviceIds: []string{"nic-1"}},
			}},
		},
	})
}

func (c *cluster) take(name string) {
	for i, p := range c.held {
		if p.GetName() == name {
			c.held = append(c.held[:i:i], c.held[i+1:]...)
			return
		}
	}
}

// status describes a pod; state is that of its container.
func (c *cluster) status(name, phase, state string, annotations map[string]string) {
	var s map[string]any
	if err := json.Unmarshal([]byte(state), &s); err != nil {
		panic(err)
	}
	p := map[string]any{
		"metadata": map[string]any{
			"name": name, "namespace": "ml", "uid": "uid-" + name,
			"labels":      map[string]string{"suanpan.io/tenant": "acme", "app": "x"},
			"annotations": annotations,
		},
		"status": map[string]any{
			"phase": phase, "containerStatuses": []any{
				map[string]any{"name": "sidecar", "state": map[string]any{
					"running": map[string]any{"startedAt": "2026-01-05T01:00:00Z"},
				}},
				map[string]any{"name": "train", "state": s},
			},
		},
	}
	for i := range c.pods {
		if c.pods[i]["metadata"].(map[string]any)["name"] == name {
			c.pods[i] = p
			return
		}
	}
	c.pods = append(c.pods, p)
}

const (
	running = `{"running": {"startedAt": "2026-01-05T02:00:00Z"}}`
	waiting = `{"waiting": {"reason": "ContainerCreating"}}`
	over    = `{"terminated": {"startedAt": "2026-01-05T02:00:00Z", "finishedAt": "2026-01-05T03:00:05Z"}}`
)

func (c *cluster) source(t *testing.T, clock *time.Time) *Kubelet {
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pods, err := NewPods(c.url, token, "")
	if err != nil {
		t.Fatal(err)
	}
	k, err := OpenKubelet(KubeletConfig{
		Socket: c.socket, Pods: pods, Now: func() time.Time { return *clock },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	return k
}

func podLease(name string, devices ...Device) Lease {
	return Lease{
		Key: "acme\x00uid-" + name, Tenant: "acme", Project: "ml", Lease: "uid-" + name,
		Purchase: "on_demand", Labels: map[string]string{}, Devices: devices, Start: now,
		Pod: name, Namespace: "ml", Container: "train",
	}
}

func TestKubelet_lifeOfAPod(t *testing.T) {
	c, clock := newCluster(t), now
	k := c.source(t, &clock)
	same(t, nil, leases(t, k))
	c.give("a", "nvidia.com/gpu", "GPU-1", "GPU-0")
	c.status("a", "Pending", waiting, nil)
	same(t, nil, leases(t, k)) // its image is pulled: the GPUs are of no use yet
	c.status("a", "Running", running, map[string]string{
		"suanpan.io/project": "llm", "suanpan.io/lease": "l-7", "suanpan.io/purchase": "spot",
		"suanpan.io/stage": "pretraining", "suanpan.io/model-version": "2", "suanpan.io/region": "cn",
		"label.suanpan.io/owner": "Ada Lovelace", "suanpan.io/resumed": "true",
		"suanpan.io/held": "cpu.core=16, memory.gib=64.5",
	})
	want := podLease("a", Device{"GPU-0", 1000}, Device{"GPU-1", 1000})
	want.Key, want.Lease, want.Project, want.Purchase = "acme\x00l-7", "l-7", "llm", "spot"
	want.Region, want.Resumed = "cn", true
	want.Held = map[string]int64{"cpu.core": 16000, "memory.gib": 64500}
	want.Labels = map[string]string{
		"stage": "pretraining", "model_version": "2", "owner": "Ada Lovelace",
	}
	same(t, []Lease{want}, leases(t, k))
	asked := c.asked
	same(t, []Lease{want}, leases(t, k))
	if c.asked != asked {
		t.Error("pods were asked for though nothing changed")
	}
	c.status("a", "Succeeded", over, map[string]string{"suanpan.io/lease": "l-7"})
	c.take("a")
	want = podLease("a", want.Devices...)
	want.Key, want.Lease, want.End = "acme\x00l-7", "l-7", now.Add(time.Hour+5*time.Second)
	same(t, []Lease{want}, leases(t, k))

	// Another process, which did not see what the pod had.
	want.Devices, want.Container, want.Start, want.Over = nil, "", time.Time{}, true
	same(t, []Lease{want}, leases(t, c.source(t, &clock)))
}

func TestKubelet_changeOfLabelsIsSeen(t *testing.T) {
	c, clock := newCluster(t), now
	k := c.source(t, &clock)
	c.give("a", "nvidia.com/gpu", "GPU-1")
	c.status("a", "Running", running, nil)
	leases(t, k)
	c.status("a", "Running", running, map[string]string{"suanpan.io/stage": "finetuning"})
	clock = clock.Add(16 * time.Second)
	if got := leases(t, k); got[0].Labels["stage"] != "finetuning" {
		t.Errorf("labels %v", got[0].Labels)
	}
}

// TestKubelet_replicas shares a card in time: the parts of all its replicas sum to 1.000, also of
// those that nobody has.
func TestKubelet_replicas(t *testing.T) {
	c, clock := newCluster(t), now
	k := c.source(t, &clock)
	c.all = []string{"GPU-1::0", "GPU-1::1", "GPU-1::2", "GPU-2::0", "GPU-2::1"}
	c.give("a", "nvidia.com/gpu", "GPU-1::0")
	c.give("b", "nvidia.com/gpu.shared", "GPU-1::2", "GPU-1::1", "GPU-2::1")
	c.status("a", "Running", running, nil)
	c.status("b", "Running", running, nil)
	same(t, []Lease{
		podLease("a", Device{"GPU-1", 334}), podLease("b", Device{"GPU-1", 666}, Device{"GPU-2", 500}),
	}, leases(t, k))
	c.all = nil
	if _, err := k.Leases(t.Context()); err == nil || !strings.Contains(err.Error(), "replica") {
		t.Errorf("replicas of an unknown card: %v", err)
	}
}

func TestKubelet_MIGDevicesAreWhole(t *testing.T) {
	c, clock := newCluster(t), now
	k := c.source(t, &clock)
	c.give("a", "nvidia.com/mig-1g.10gb", "MIG-1", "MIG-2")
	c.status("a", "Running", running, nil)
	same(t, []Lease{podLease("a", Device{"MIG-1", 1000}, Device{"MIG-2", 1000})}, leases(t, k))
}

// TestKubelet_podsOfOneLease are one lease: two sessions of a lease on a card would bill it twice.
func TestKubelet_podsOfOneLease(t *testing.T) {
	c, clock := newCluster(t), now
	k := c.source(t, &clock)
	c.all = []string{"GPU-1::0", "GPU-1::1", "GPU-1::2"}
	lease := map[string]string{"suanpan.io/lease": "chat", "suanpan.io/held": "cpu.core=2"}
	c.give("a", "nvidia.com/gpu", "GPU-1::0")
	c.give("b", "nvidia.com/gpu", "GPU-1::1")
	c.status("a", "Running", running, lease)
	c.status("b", "Running", strings.ReplaceAll(running, "02:00", "02:10"), lease)
	want := podLease("a", Device{"GPU-1", 667})
	want.Key, want.Lease, want.Start = "acme\x00chat", "chat", now.Add(10*time.Minute)
	want.Held = map[string]int64{"cpu.core": 4000}
	same(t, []Lease{want}, leases(t, k))
	c.status("b", "Failed", over, lease)
	c.take("b")
	want.Devices, want.Start = []Device{{"GPU-1", 334}}, now
	want.Held = map[string]int64{"cpu.core": 2000}
	same(t, []Lease{want}, leases(t, k))
}

func TestKubelet_noTenantNoLease(t *testing.T) {
	c, clock := newCluster(t), now
	k := c.source(t, &clock)
	c.give("a", "nvidia.com/gpu", "GPU-1")
	c.give("b", "nvidia.com/gpu", "GPU-2")
	c.status("a", "Running", running, map[string]string{"suanpan.io/tenant": ""})
	c.status("b", "Running", running, map[string]string{"suanpan.io/purchase": "gift"})
	same(t, nil, leases(t, k))
}

// TestKubelet_awayTellsNothing restarts the kubelet: leases are not known meanwhile, and known
// again afterwards.
func TestKubelet_awayTellsNothing(t *testing.T) {
	c, clock := newCluster(t), now
	k := c.source(t, &clock)
	c.give("a", "nvidia.com/gpu", "GPU-1")
	c.status("a", "Running", running, nil)
	want := []Lease{podLease("a", Device{"GPU-1", 1000})}
	same(t, want, leases(t, k))
	c.server.Stop()
	if got, err := k.Leases(t.Context()); err == nil {
		t.Errorf("no kubelet: %v", got)
	}
	c.serve(t)
	waitFor(t, func() error { _, err := k.Leases(t.Context()); return err })
	same(t, want, leases(t, k))
	c.broken = true
	clock = clock.Add(time.Minute)
	if got, err := k.Leases(t.Context()); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("no API server: %v, %v", got, err)
	}
}

func waitFor(t *testing.T, poll func() error) {
	t.Helper()
	err := fmt.Errorf("not asked")
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		if err = poll(); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal(err)
}
