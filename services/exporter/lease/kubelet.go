package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

const (
	kubeletTimeout = 5 * time.Second
	kubeletBytes   = 16 << 20 // of an answer
)

// KubeletConfig says where Kubernetes tells who has which device.
type KubeletConfig struct {
	Socket   string // of the kubelet's pod-resources API
	Resource string // prefix of the names of resources; default "nvidia.com/"
	Pods     *Pods
	// Refresh is how often pods are asked for where no allocation changed: a change of labels is
	// seen that late. Default 15 s.
	Refresh time.Duration
	// Replicas of a card in time-slicing, where the kubelet does not tell the devices that there
	// are; 0: it must.
	Replicas int
	Now      func() time.Time
	Log      *slog.Logger
}

// Kubelet is the source of leases in Kubernetes. Which pod has which device is asked of the
// kubelet, over its socket; who is billed for that stands in the pod's labels and annotations,
// which the kubelet's socket does not tell. Pods without suanpan.io/tenant have no lease: they are
// logged, and their devices count as idle. All pods of a lease on a node are one lease here, with
// the labels of the one that began first.
type Kubelet struct {
	config  KubeletConfig
	conn    *grpc.ClientConn
	client  podresources.PodResourcesListerClient
	pods    []pod
	fetched time.Time            // when pods was; zero: fetch them again
	known   map[string]*podShare // pod UID -> what it has, or had
	held    string               // the allocations at the last fetch
	refused map[string]string    // pod UID -> why it has no lease, as logged
}

// podShare is what a pod has.
type podShare struct {
	devices    []Device
	containers map[string]bool
	now        bool // it has it now
}

// OpenKubelet returns the source. It connects when it is asked.
func OpenKubelet(config KubeletConfig) (*Kubelet, error) {
	config.Resource = cmp.Or(config.Resource, "nvidia.com/")
	config.Refresh = cmp.Or(config.Refresh, 15*time.Second)
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	conn, err := grpc.NewClient("unix:"+config.Socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()), // the socket's mode guards it
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(kubeletBytes)))
	if err != nil {
		return nil, fmt.Errorf("open kubelet: %w", err)
	}
	return &Kubelet{
		config: config, conn: conn, client: podresources.NewPodResourcesListerClient(conn),
		known: map[string]*podShare{}, refused: map[string]string{},
	}, nil
}

// Close closes the connection.
func (k *Kubelet) Close() error { return k.conn.Close() }

// Name implements Source.
func (*Kubelet) Name() string { return "kubelet" }

// Leases implements Source.
func (k *Kubelet) Leases(ctx context.Context) ([]Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, kubeletTimeout+podsTimeout)
	defer cancel()
	answer, err := k.client.List(ctx, &podresources.ListPodResourcesRequest{})
	if err != nil {
		return nil, fmt.Errorf("list pod resources: %w", err)
	}
	held, err := k.allocations(ctx, answer)
	if err != nil {
		return nil, err
	}
	text := fmt.Sprint(held)
	now := k.config.Now()
	age := now.Sub(k.fetched)
	if text != k.held || k.fetched.IsZero() || age < 0 || age >= k.config.Refresh {
		pods, err := k.config.Pods.list(ctx)
		if err != nil {
			return nil, err
		}
		k.pods, k.fetched, k.held = pods, now, text
	}
	return k.join(held), nil
}

// allocation is a pod's devices, as the kubelet tells them.
type allocation struct {
	pod        string // namespace/name
	containers []string
	devices    []Device
}

// allocations reads who has which device, by pod.
func (k *Kubelet) allocations(ctx context.Context, answer *podresources.ListPodResourcesResponse,
) ([]allocation, error) {
	var all []allocation
	var replicas map[string]int
	for _, p := range answer.GetPodResources() {
		a := allocation{pod: p.GetNamespace() + "/" + p.GetName()}
		for _, c := range p.GetContainers() {
			has := false
			for _, d := range c.GetDevices() {
				if !strings.HasPrefix(d.GetResourceName(), k.config.Resource) {
					continue
				}
				for _, id := range d.GetDeviceIds() {
					device := Device{id, whole}
					if card, i, ok := replica(id); ok {
						if replicas == nil {
							var err error
							if replicas, err = k.replicas(ctx); err != nil {
								return nil, err
							}
						}
						n := cmp.Or(k.config.Replicas, replicas[card])
						if i >= n || n > whole {
							return nil, fmt.Errorf("list pod resources: %s is a replica of %d", id, n)
						}
						device = Device{card, Share(i, n)}
					}
					a.devices, has = addDevice(a.devices, device), true
				}
			}
			if has {
				a.containers = append(a.containers, c.GetName())
			}
		}
		if len(a.devices) > 0 {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b allocation) int { return strings.Compare(a.pod, b.pod) })
	return all, nil
}

// addDevice adds a part of a device to a list, sorted by name.
func addDevice(list []Device, d Device) []Device {
	i, there := slices.BinarySearchFunc(list, d.Name, func(o Device, name string) int {
		return strings.Compare(o.Name, name)
	})
	if there {
		list[i].Milli = min(whole, list[i].Milli+d.Milli)
		return list
	}
	return slices.Insert(list, i, d)
}

// replica reads the id of a replica of a shared card, "GPU-1::3".
func replica(id string) (card string, i int, ok bool) {
	card, number, found := strings.Cut(id, "::")
	i, err := strconv.Atoi(number)
	return card, i, found && err == nil && i >= 0
}

// replicas counts the replicas of each card that there are, free ones included.
func (k *Kubelet) replicas(ctx context.Context) (map[string]int, error) {
	count := map[string]int{}
	if k.config.Replicas > 0 {
		return count, nil
	}
	answer, err := k.client.GetAllocatableResources(ctx,
		&podresources.AllocatableResourcesRequest{})
	if err != nil {
		return nil, fmt.Errorf("list devices (say how many replicas a card has if this kubelet "+
			"cannot): %w", err)
	}
	for _, d := range answer.GetDevices() {
		if !strings.HasPrefix(d.GetResourceName(), k.config.Resource) {
			continue
		}
		for _, id := range d.GetDeviceIds() {
			if card, _, ok := replica(id); ok {
				count[card]++
			}
		}
	}
	return count, nil
}

// join brings together who has devices and who is billed.
func (k *Kubelet) join(held []allocation) []Lease {
	for _, share := range k.known {
		share.now = false
	}
	var leases []Lease
	there := map[string]bool{}
	for i := range k.pods {
		p := &k.pods[i]
		uid := p.Metadata.UID
		there[uid] = true
		name := p.Metadata.Namespace + "/" + p.Metadata.Name
		j, has := slices.BinarySearchFunc(held, name, func(a allocation, pod string) int {
			return strings.Compare(a.pod, pod)
		})
		if has && p.Status.Phase != "Succeeded" && p.Status.Phase != "Failed" {
			share := &podShare{held[j].devices, map[string]bool{}, true}
			for _, c := range held[j].containers {
				share.containers[c] = true
			}
			k.known[uid] = share
		}
		share := k.known[uid]
		if share == nil {
			if l, ok := overLease(p); ok {
				leases = append(leases, l)
			}
			continue
		}
		if l, ok := k.leaseOf(p, share); ok {
			leases = append(leases, l)
		}
	}
	for uid := range k.known {
		if !there[uid] {
			delete(k.known, uid)
			delete(k.refused, uid)
		}
	}
	return merge(leases)
}

// overLease returns the end of a pod that ended before this process knew what it had.
func overLease(p *pod) (Lease, bool) {
	all := map[string]bool{}
	for _, list := range [][]containerStatus{p.Status.Init, p.Status.Containers} {
		for _, c := range list {
			all[c.Name] = true
		}
	}
	end := p.ended(all)
	if end.IsZero() {
		return Lease{}, false
	}
	l, err := p.terms()
	l.End, l.Over = end, true
	if err == nil {
		err = l.complete()
	}
	l.Key = key(l.Tenant, l.Lease)
	return l, err == nil
}

// leaseOf returns the lease of a pod that has devices, or had them. false: it has none.
func (k *Kubelet) leaseOf(p *pod, share *podShare) (Lease, bool) {
	l, err := p.terms()
	l.Devices = share.devices
	l.Start, l.End = p.began(share.containers), p.ended(share.containers)
	for name := range share.containers {
		l.Container = max(l.Container, name)
	}
	if err == nil {
		err = l.complete()
	}
	if err != nil {
		if text := err.Error(); k.refused[p.Metadata.UID] != text {
			k.refused[p.Metadata.UID] = text
			log := k.config.Log.Error
			if errors.Is(err, errNoTenant) {
				log = k.config.Log.Warn
			}
			log("a pod has devices and no lease: nobody is billed for them", "why", text,
				"pod", p.Metadata.Namespace+"/"+p.Metadata.Name)
		}
		return l, false
	}
	if l.Start.IsZero() { // it is starting: the devices are of no use yet
		k.fetched = time.Time{}
		return l, false
	}
	if !share.now && l.End.IsZero() { // it lost its devices, and is not said to be over yet
		k.fetched = time.Time{}
		return l, false
	}
	l.Key = key(l.Tenant, l.Lease)
	return l, true
}

// merge makes one lease of all pods that have the same one.
func merge(leases []Lease) []Lease {
	slices.SortStableFunc(leases, func(a, b Lease) int {
		if c := strings.Compare(a.Key, b.Key); c != 0 {
			return c
		}
		return a.Start.Compare(b.Start)
	})
	var merged []Lease
	for _, l := range leases {
		if n := len(merged); n > 0 && merged[n-1].Key == l.Key {
			merged[n-1] = together(&merged[n-1], &l)
			continue
		}
		merged = append(merged, l)
	}
	return merged
}

// together is what two pods of a lease hold. Of one that is over, nothing is left while another is
// not.
func together(a, b *Lease) Lease {
	switch {
	case !a.End.IsZero() && (b.End.IsZero() || b.End.After(a.End)):
		return *b
	case !b.End.IsZero():
		return *a
	}
	both := *a
	both.Start = b.Start // when it came to hold all that
	both.Devices = slices.Clone(a.Devices)
	for _, d := range b.Devices {
		both.Devices = addDevice(both.Devices, d)
	}
	if len(b.Held) > 0 {
		both.Held = map[string]int64{}
		for _, held := range []map[string]int64{a.Held, b.Held} {
			for sku, milli := range held {
				both.Held[sku] += milli
			}
		}
	}
	return both
}
