# Suanpan. `make demo` shows it, `make test` checks everything; CI calls the same targets.
# TRACE=path/to/openb_pod_list_default.csv makes demo and bench use the real trace.
# SUANPAN_TEST_ALL=1 makes every part or test that cannot run a failure.

.DEFAULT_GOAL := help
SHELL := /bin/bash
TRACE ?=
FUZZTIME ?= 10s
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
export TRACE FUZZTIME

.PHONY: help setup build build-gpu demo test fmt fmt-check vet lint unit scenario sim fuzz bench e2e race test-gpu up down clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | \
		awk 'BEGIN { FS = ":.*## " } { printf "  %-10s %s\n", $$1, $$2 }'

setup: ## fetch libchdb (pinned, its checksum checked) and a font, and print where they are
	@deployments/setup/libchdb.sh
	@deployments/setup/font.sh

build: ## build the command into bin/
	CGO_ENABLED=0 go build -trimpath -ldflags "-X main.version=$(VERSION)" -o bin/ ./services/...

build-gpu: ## build the command with cgo into bin/, as GPU nodes need it (a C compiler, glibc)
	CGO_ENABLED=1 go build -trimpath -ldflags "-X main.version=$(VERSION)" -o bin/ ./services/suanpan

demo: ## everything on this machine: serve, a catalog, a fleet's usage, the spend (TRACE=FILE)
	@deployments/demo.sh

test: ## everything: formats, vet, lint, unit, laws, arch, scenarios, sim, e2e; ends with a table
	@go run ./tests/run

fmt: ## format all Go files
	@go run ./tests/run fmt

fmt-check: ## are all Go files formatted?
	@go run ./tests/run fmt-check

vet: ## go vet, with every build tag
	@go run ./tests/run vet

lint: ## golangci-lint (installed into the user's cache, pinned)
	@go run ./tests/run lint

unit: ## unit tests, laws, fuzz seeds, arch, deployment files, scenarios
	@go run ./tests/run unit

scenario: ## the scenarios alone
	go test ./tests/scenario/...

sim: ## seeded simulations with an independent auditor
	@go run ./tests/run sim

e2e: ## the built programs against a real Kafka and a real ClickHouse
	@go run ./tests/run e2e

race: ## unit tests and simulations with the race detector (needs a C compiler)
	go test -race $$(go list ./... | grep -v /tests/e2e)

test-gpu: ## what the exporter reads of this machine's GPUs, compared with nvidia-smi
	CGO_ENABLED=1 go test -count=1 -v -run '^TestRealGPU$$' ./tests/gpu

fuzz: ## every fuzz target for FUZZTIME (10s)
	@go run ./tests/run fuzz

bench: ## speed of every stage and of the whole path, as ratios (TRACE=FILE)
	go run ./tests/bench

up: ## the same on containers: Kafka, ClickHouse, the services, Prometheus, Grafana
	docker compose up --build --detach --wait

down: ## stop the containers (volumes stay)
	docker compose down

clean: ## remove what was built (not the caches, not the data)
	rm -rf bin coverage.out
