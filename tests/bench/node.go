package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/suanpan/suanpan/pkg/nvml/fakenvml"
)

// A node with 8 GPUs in 56 MIG devices, as its exporter samples and shows it.
const (
	nodeGPUs  = 8
	nodeParts = 7                // of each
	nodeTime  = 75 * time.Second // with the end of a window, at least
	nodeWarm  = 5 * time.Second  // what starts and is found is not what is measured
	nodeEvery = 15 * time.Second // between looks of a Prometheus

	// What the exporter may take.
	nodeCoreMost = 0.02 // of one core
	nodeMiBMost  = 64
)

// node measures what the exporter takes of a node on the fake driver: its processor time as a share
// of one core, and its memory. All MIG devices are leased, and their events go to a Kafka. The fake
// driver's time is in it; a real one may take longer.
func (b *bench) node(ctx context.Context) error {
	library, err := fakenvml.Compile(ctx)
	if errors.Is(err, fakenvml.ErrNoCompiler) {
		b.say("the exporter: NOT RUN: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	b.say("building the exporter")
	exporter := *b
	if exporter.binary, err = b.build(ctx, "suanpan-gpu", "CGO_ENABLED=1"); err != nil {
		return err
	}
	script, leases, err := b.leasedNode()
	if err != nil {
		return err
	}
	if err := os.Setenv(fakenvml.Env, script); err != nil {
		return fmt.Errorf("name the script: %w", err)
	}
	broker, brokers, err := exporter.broker(ctx, "node")
	if err != nil {
		return err
	}
	defer broker.stop()
	addr, err := freeAddr()
	if err != nil {
		return err
	}
	p, err := exporter.start(ctx, "exporter", "exporter", "--nvml", library, "--node", "bench",
		"--admin", addr, "--kafka", brokers, "--data", filepath.Join(b.dir, "exporter"),
		"--socket", filepath.Join(b.dir, "exporter.sock"), "--lease-file", leases)
	if err != nil {
		return err
	}
	defer p.stop()
	return b.watchNode(ctx, p, addr)
}

// leasedNode writes the script of the node's driver, and a lease of each MIG device.
func (b *bench) leasedNode() (script, leases string, err error) {
	node := fakenvml.Node(0)
	var file bytes.Buffer
	file.WriteString("leases:\n")
	began := time.Now().UTC().Truncate(time.Second).Format(time.RFC3339)
	for i := range nodeGPUs {
		card := fakenvml.Split(fakenvml.H100(i), nodeParts)
		card.Processes = []fakenvml.Process{{PID: 1000 + i, Name: "/usr/bin/python3", MiB: 512}}
		node.GPUs = append(node.GPUs, card)
		for part := range nodeParts {
			fmt.Fprintf(&file, "- {lease: job-%d-%d, tenant: tenant-%d, project: p, "+
				"devices: [\"%d.%d\"], start: %s}\n", i, part, part, i, part, began)
		}
	}
	script, leases = filepath.Join(b.dir, "node"), filepath.Join(b.dir, "leases.yaml")
	if err := node.Write(script); err != nil {
		return "", "", err
	}
	if err := os.WriteFile(leases, file.Bytes(), 0o600); err != nil {
		return "", "", fmt.Errorf("write leases: %w", err)
	}
	return script, leases, nil
}

// watchNode waits until all leases have their sessions, and then measures the exporter while its
// metrics are read as often as a Prometheus does.
func (b *bench) watchNode(ctx context.Context, p *process, addr string) error {
	all := fmt.Sprintf("\nsuanpan_exporter_sessions %d\n", nodeGPUs*nodeParts)
	err := p.await(ctx, startTimeout, func() (bool, error) {
		metrics, err := scrape(ctx, addr)
		return strings.Contains(metrics, all), err
	})
	if err != nil {
		return err
	}
	if err := sleep(ctx, nodeWarm); err != nil {
		return err
	}
	b.say("the exporter, for %s", nodeTime)
	began, spent := time.Now(), p.cpu()
	bytes := 0
	for time.Since(began) < nodeTime {
		metrics, err := scrape(ctx, addr)
		if err != nil {
			return err
		}
		bytes = len(metrics)
		if err := sleep(ctx, nodeEvery); err != nil {
			return err
		}
	}
	b.report.NodeCore = (p.cpu() - spent) / time.Since(began).Seconds()
	b.report.NodeMiB, b.report.NodeBytes = p.peak(), bytes
	return nil
}

// sleep waits, or fails when ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// scrape reads a node's metrics as Prometheus does.
func scrape(ctx context.Context, addr string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/metrics", nil)
	if err != nil {
		return "", fmt.Errorf("read metrics: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("read metrics: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("read metrics: %s: %w", response.Status, err)
	}
	return string(text), nil
}
