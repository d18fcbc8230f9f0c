package exporter

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/suanpan/suanpan/pkg/nvml"
)

// SKUs name what devices are rented as. By default a GPU is gpu.<model>-<memory>g, in lower case:
// "NVIDIA A800-SXM4-80GB" is gpu.a800-80g, "NVIDIA GeForce RTX 4090" gpu.rtx4090-24g. A MIG device
// is its GPU's SKU with its profile: gpu.h100-80g.1g.10gb. Where the name has no memory, that of a
// MIG device's card is not known: name such models yourself.
type SKUs struct{ names map[string]string }

// ParseSKUs reads exceptions, "NVML NAME=SKU" each.
func ParseSKUs(exceptions []string) (SKUs, error) {
	s := SKUs{map[string]string{}}
	for _, text := range exceptions {
		name, sku, ok := strings.Cut(text, "=")
		name, sku = strings.TrimSpace(name), strings.TrimSpace(sku)
		if !ok || name == "" || sku == "" || strings.ContainsAny(sku, " \t") {
			return s, fmt.Errorf("read SKU %q: must be \"NVML NAME=SKU\"", text)
		}
		s.names[name] = sku
	}
	return s, nil
}

// Of returns a device's SKU. It is the same for all devices of a model, however much of their
// memory the driver keeps for itself.
func (s SKUs) Of(d nvml.Device) string {
	sku := s.names[d.Name]
	if sku == "" {
		sku = "gpu." + defaultSKU(d)
	}
	if d.MIG() {
		sku += "." + strings.ToLower(d.Profile)
	}
	return sku
}

var (
	nameMemory = regexp.MustCompile(`(?i)\b(\d+) ?GB\b`)
	nameVendor = regexp.MustCompile(`(?i)^(NVIDIA|GeForce|Tesla|Quadro|Graphics Device)\s+`)
	nameModel  = regexp.MustCompile(
		`(?i)^(RTX|GTX|TITAN)?\s*(PRO\s+)?([A-Z0-9]+)(\s+(Ti|Super|Ada)\b)?`)
)

// sizes are what GPUs are sold with, in GiB: NVML tells a little less or more.
var sizes = []int64{
	4, 6, 8, 10, 11, 12, 16, 20, 22, 24, 32, 40, 48, 64, 72, 80, 94, 96, 120, 128, 141, 144, 180, 192,
	256, 288,
}

func defaultSKU(d nvml.Device) string {
	name := d.Name
	for {
		shorter := nameVendor.ReplaceAllString(name, "")
		if shorter == name {
			break
		}
		name = shorter
	}
	model := "unknown"
	if m := nameModel.FindString(name); m != "" {
		model = strings.ToLower(strings.Join(strings.Fields(m), ""))
	}
	if m := nameMemory.FindStringSubmatch(d.Name); m != nil {
		return model + "-" + m[1] + "g"
	}
	if d.MIG() || d.MemoryMiB <= 0 { // a part's memory says nothing of the card's
		return model
	}
	gib := (d.MemoryMiB + 512) / 1024
	best := sizes[0]
	for _, s := range sizes {
		if abs(s-gib) < abs(best-gib) {
			best = s
		}
	}
	return fmt.Sprintf("%s-%dg", model, best)
}

func abs(n int64) int64 { return max(n, -n) }
