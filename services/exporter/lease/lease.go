// Package lease says who holds the devices of a node. It has four sources: the kubelet, Slurm, a
// file, and what the platform asks for by HTTP. Each of them tells all leases that it knows of, as
// they are at the moment, or that it does not know. What it hides is how they tell it. It keeps no
// account of time: that is package session's.
package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Device is a device that is held. Its name is a UUID, or its place: "3", or "3.0" for the first
// MIG device of GPU 3.
type Device struct {
	Name  string
	Milli int64 // how much of it, thousandths, 1 to 1000
}

// Lease is one allocation of a lease on this node.
type Lease struct {
	Key      string // names it among those of its source
	Tenant   string
	Project  string
	Lease    string
	Purchase string
	Region   string
	Labels   map[string]string
	Devices  []Device
	Held     map[string]int64 // further SKUs, to thousandths
	Start    time.Time        // when it began to be usable; zero: not known
	End      time.Time        // when it ended, or will; zero: not known
	Resumed  bool             // it goes on from another node, or from an interruption
	Over     bool             // it ended, and what it held is not known any more

	Pod, Namespace, Container string // where Kubernetes gave the devices away
}

// Source knows leases.
type Source interface {
	// Name is one word that does not change: sessions are remembered by it.
	Name() string
	// Leases returns all leases of this node as they are now, also those that ended lately where
	// the source knows when. A lease that is missing ended without notice. An error means that
	// the leases are not known now; it changes nothing.
	Leases(ctx context.Context) ([]Lease, error)
}

// Limits of what an event may carry.
const (
	textMost    = 256 // bytes
	labelsMost  = 64
	skusMost    = 48 // besides those of devices
	devicesMost = 1024
	whole       = 1000 // thousandths
)

// purchases are the ways to pay.
var purchases = []string{"on_demand", "reserved", "spot", "per_task"}

// complete fills in what may be left out, and says what is wrong with the lease.
func (l *Lease) complete() error {
	if l.Project == "" {
		l.Project = "default"
	}
	if l.Purchase == "" {
		l.Purchase = "on_demand"
	}
	for _, text := range []struct{ name, value string }{
		{"lease", l.Lease}, {"tenant", l.Tenant}, {"project", l.Project},
	} {
		if text.value == "" || len(text.value) > textMost {
			return fmt.Errorf("%s %.40q: must have 1 to %d bytes", text.name, text.value, textMost)
		}
	}
	switch {
	case !slices.Contains(purchases, l.Purchase):
		return fmt.Errorf("purchase %.40q is none of %s", l.Purchase, strings.Join(purchases, ", "))
	case len(l.Region) > textMost:
		return fmt.Errorf("region of %d bytes, at most %d", len(l.Region), textMost)
	case len(l.Labels) > labelsMost:
		return fmt.Errorf("%d labels, at most %d", len(l.Labels), labelsMost)
	case len(l.Devices) == 0 && len(l.Held) == 0 && !l.Over:
		return errors.New("neither devices nor held amounts")
	case len(l.Devices) > devicesMost || len(l.Held) > skusMost:
		return fmt.Errorf("more than %d devices or %d SKUs", devicesMost, skusMost)
	}
	for name, value := range l.Labels {
		if name == "" || len(name) > textMost || len(value) > textMost {
			return fmt.Errorf("label %.40q: name and value must have at most %d bytes", name, textMost)
		}
	}
	for sku := range l.Held {
		if sku == "" || len(sku) > textMost {
			return fmt.Errorf("SKU %.40q: must have 1 to %d bytes", sku, textMost)
		}
	}
	return nil
}

// Document is a lease as people and platforms write it, in YAML or JSON.
type Document struct {
	Lease    string            `json:"lease" yaml:"lease"`
	Tenant   string            `json:"tenant" yaml:"tenant"`
	Project  string            `json:"project,omitempty" yaml:"project"`   // default "default"
	Purchase string            `json:"purchase,omitempty" yaml:"purchase"` // default "on_demand"
	Region   string            `json:"region,omitempty" yaml:"region"`     // default the node's
	Devices  []string          `json:"devices,omitempty" yaml:"devices"`   // UUIDs or places
	Share    string            `json:"share,omitempty" yaml:"share"`       // of each; default "1"
	Held     map[string]string `json:"held,omitempty" yaml:"held"`         // further SKUs
	Labels   map[string]string `json:"labels,omitempty" yaml:"labels"`
	Start    time.Time         `json:"start,omitzero" yaml:"start"` // default when it is first seen
	End      time.Time         `json:"end,omitzero" yaml:"end"`     // default when it is gone
	Resumed  bool              `json:"resumed,omitempty" yaml:"resumed"`
}

// parse returns the lease that a document describes.
func (d *Document) parse() (Lease, error) {
	l := Lease{
		Tenant: d.Tenant, Project: d.Project, Lease: d.Lease, Purchase: d.Purchase,
		Region: d.Region, Labels: d.Labels, Start: d.Start, End: d.End, Resumed: d.Resumed,
	}
	share := int64(whole)
	if d.Share != "" {
		var err error
		if share, err = ParseMilli(d.Share); err != nil || share > whole {
			return l, fmt.Errorf("share %.40q: must be above 0 and at most 1", d.Share)
		}
	}
	for _, name := range d.Devices {
		if name == "" || slices.ContainsFunc(l.Devices, func(o Device) bool { return o.Name == name }) {
			return l, fmt.Errorf("device %.40q is empty or there twice", name)
		}
		l.Devices = append(l.Devices, Device{name, share})
	}
	for sku, amount := range d.Held {
		milli, err := ParseMilli(amount)
		if err != nil {
			return l, fmt.Errorf("held %.40q: %w", sku, err)
		}
		if l.Held == nil {
			l.Held = map[string]int64{}
		}
		l.Held[sku] = milli
	}
	return l, l.complete()
}

// key names a lease among those of a source that has each once.
func key(tenant, lease string) string { return tenant + "\x00" + lease }

// milliMost is the largest amount that is accepted, in thousandths.
const milliMost = int64(1e15)

// ParseMilli reads a decimal above 0 with at most 3 decimals: "1.5" is 1500.
func ParseMilli(text string) (int64, error) {
	digits, fraction, _ := strings.Cut(text, ".")
	if len(fraction) > 3 {
		fraction = strings.TrimRight(fraction, "0")
	}
	if digits == "" || len(fraction) > 3 || strings.Trim(digits+fraction, "0123456789") != "" {
		return 0, fmt.Errorf("amount %.40q: must be a decimal with at most 3 decimals", text)
	}
	milli, err := strconv.ParseInt(digits+(fraction + "000")[:3], 10, 64)
	if err != nil || milli <= 0 || milli > milliMost {
		return 0, fmt.Errorf("amount %.40q: must be above 0, and not that large", text)
	}
	return milli, nil
}

// Share returns replica i's part of a card that is shared by n replicas, in thousandths. The parts
// of all replicas sum to 1000: by largest remainder, the first ones get one more. n is 1 to 1000.
func Share(i, n int) int64 {
	if n < 1 || n > whole || i < 0 || i >= n {
		panic(fmt.Sprintf("BUG: replica %d of %d", i, n))
	}
	part := int64(whole / n)
	if i < whole%n {
		part++
	}
	return part
}
