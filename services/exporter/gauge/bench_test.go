//go:build cgo && linux

package gauge_test

import (
	"testing"
	"time"

	"github.com/suanpan/suanpan/pkg/nvml/fakenvml"
	"github.com/suanpan/suanpan/services/exporter/gauge"
)

// BenchmarkStep samples 8 GPUs that are split into 56 MIG devices, as every second of such a node
// does. The metric is the share of one core that this takes at one sample a second.
func BenchmarkStep(b *testing.B) {
	script := fakenvml.Node(0)
	for i := range 8 {
		script.GPUs = append(script.GPUs, fakenvml.Split(fakenvml.H100(i), 7))
	}
	n := start(b, script, gauge.Config{})
	n.sample(2)
	if got := len(n.Devices()); got != 64 {
		b.Fatalf("%d devices", got)
	}
	b.ReportAllocs()
	for b.Loop() {
		n.sample(1)
	}
	b.ReportMetric(100*b.Elapsed().Seconds()/float64(b.N)/time.Second.Seconds(), "%core")
}
