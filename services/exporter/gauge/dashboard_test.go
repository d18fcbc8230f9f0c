//go:build cgo && linux

package gauge_test

import (
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/suanpan/suanpan/pkg/nvml/fakenvml"
	"github.com/suanpan/suanpan/services/exporter/gauge"
)

// deployments is where rules and dashboards are.
const deployments = "../../../deployments/"

var (
	metricName = regexp.MustCompile(`\b(?:suanpan_gpu|nvidia_smi|DCGM_FI)_\w+`)
	descName   = regexp.MustCompile(`fqName: "([^"]+)"`)
)

// Rules and dashboards of GPU nodes name metrics that the sampler has; tests/deploy sees only those
// that begin with our own name.
func TestDescribe_whatRulesAndDashboardsName(t *testing.T) {
	n := start(t, fakenvml.Node(0), gauge.Config{Every: time.Second})
	descs := make(chan *prometheus.Desc)
	go func() {
		n.Describe(descs)
		close(descs)
	}()
	var have []string
	for desc := range descs {
		have = append(have, descName.FindStringSubmatch(desc.String())[1])
	}
	if len(have) < 60 {
		t.Errorf("only %d metrics are described", len(have))
	}
	for _, file := range []string{"prometheus/gpu.yml", "grafana/dashboards/gpu.json"} {
		text, err := os.ReadFile(deployments + file)
		if err != nil {
			t.Fatal(err)
		}
		names := metricName.FindAllString(string(text), -1)
		if len(names) < 10 {
			t.Errorf("%s names only %q", file, names)
		}
		for _, name := range names {
			if !slices.Contains(have, name) {
				t.Errorf("%s names %s, which the sampler does not have", file, name)
			}
		}
	}
}
