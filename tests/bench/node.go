package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/suanpan/suanpan/pkg/nvml"
	"github.com/suanpan/suanpan/pkg/nvml/fakenvml"
	"github.com/suanpan/suanpan/services/exporter/gauge"
)

// A node with 8 GPUs in 56 MIG devices, as its exporter samples and shows it.
const (
	nodeGPUs  = 8
	nodeParts = 7 // of each
	nodeTime  = 60 * time.Second
	nodeWarm  = 5 * time.Second  // what starts and is found is not what is measured
	nodeEvery = 15 * time.Second // between looks of a Prometheus

	// What the sampling may take.
	nodeCoreMost = 0.02 // of one core
	nodeMiBMost  = 64
)

// node measures what the exporter's sampling takes of a node, on the fake driver: its processor
// time as a share of one core, and its memory. It is a process of this program, which does nothing
// else (see sampleNode). The fake driver's time is in it; a real one may take longer.
func (b *bench) node(ctx context.Context) error {
	library, err := fakenvml.Compile(ctx)
	if errors.Is(err, fakenvml.ErrNoCompiler) {
		b.say("the exporter: NOT RUN: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	script := fakenvml.Node(0)
	for i := range nodeGPUs {
		card := fakenvml.Split(fakenvml.H100(i), nodeParts)
		card.Processes = []fakenvml.Process{{PID: 1000 + i, Name: "/usr/bin/python3", MiB: 512}}
		script.GPUs = append(script.GPUs, card)
	}
	path := filepath.Join(b.dir, "node")
	if err := script.Write(path); err != nil {
		return err
	}
	if err := os.Setenv(fakenvml.Env, path); err != nil {
		return fmt.Errorf("name the script: %w", err)
	}
	addr, err := freeAddr()
	if err != nil {
		return err
	}
	self := *b
	if self.binary, err = os.Executable(); err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	b.say("the exporter, for %s", nodeTime)
	p, err := self.start(ctx, "node", "-sample-node", addr, "-nvml", library)
	if err != nil {
		return err
	}
	defer p.stop()
	if err := p.await(ctx, startTimeout, func() (bool, error) {
		n, err := scrape(ctx, addr)
		return n > 0, err
	}); err != nil {
		return err
	}
	if err := sleep(ctx, nodeWarm); err != nil {
		return err
	}
	began, spent := time.Now(), p.cpu()
	bytes := 0
	for time.Since(began) < nodeTime {
		if bytes, err = scrape(ctx, addr); err != nil {
			return err
		}
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

// scrape reads a node's metrics as Prometheus does, and returns their size.
func scrape(ctx context.Context, addr string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/metrics", nil)
	if err != nil {
		return 0, fmt.Errorf("read metrics: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, fmt.Errorf("read metrics: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("read metrics: %s: %w", response.Status, err)
	}
	return len(text), nil
}

// sampleNode is the process that node measures: it samples once a second and shows metrics, until
// ctx ends.
func sampleNode(ctx context.Context, addr, path string) error {
	library, err := nvml.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = library.Close() }() // the process ends
	sampler := gauge.New(library, gauge.Config{
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)), Node: "bench", Processes: true,
	})
	registry := prometheus.NewRegistry()
	registry.MustRegister(sampler)
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{
		Handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), ReadTimeout: time.Minute,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	err = sampler.Run(ctx)
	return errors.Join(err, server.Close(), closed(<-served))
}

// closed is nil for the error of a server that was closed.
func closed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
