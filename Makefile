# One target a lane: a laptop runs what CI runs. `make help` lists them, CONTRIBUTING.md explains them.
SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
ifndef TOGETHER
.NOTPARALLEL:
endif
.DEFAULT_GOAL := all

FUZZTIME ?= 1s
# make test uses -short, which skips the tests that only make test-all runs.
SHORT    ?= -short
SEEDS    ?= 1000
ARGS     ?=
PREFIX   ?= /usr/local
DESTDIR  ?=

# The provider library for C programs: the only thing here that needs cgo.
PROVIDER := bin/libdatxdp.so
# The runtime sends no signals to threads of the program, and leaves the stacks of their goroutines large
# (cmd/libdatxdp/runtime.c).
PROVIDER_LDFLAGS := -X=runtime.godebugDefault=asyncpreemptoff=1,gcshrinkstackoff=1

LANE := bin/lane
# Tests that start programs. make test runs them without the race detector, which makes the programs several times slower.
PROGRAMS := ./cmd/datbench ./examples
# The longest first, so that none of them is the last to end.
TEST_PKGS = ./dat ./wire ./stream ./xdp $$(go list ./... | grep -vE '/(dat|wire|stream|xdp|cmd/datbench|examples|internal/checks/docs)$$')
# Each test program has a network namespace of its own.
ISOLATED := -exec $(CURDIR)/tools/isolate.sh
# Without it each program with the race detector sleeps for a second when it ends.
export GORACE := atexit_sleep_ms=0

# The programs are built with cmd/datbench/default.pgo (make profile). Tests are built without the profile. With it, every
# package would be compiled twice.
export GOFLAGS := $(GOFLAGS) -pgo=off
PROFILE := -pgo=$(CURDIR)/cmd/datbench/default.pgo

# A checkout that belongs to another user cannot be stamped with its revision.
ifneq ($(shell git rev-parse HEAD >/dev/null 2>&1 && echo ok),ok)
export GOFLAGS := $(GOFLAGS) -buildvcs=false
endif

.PHONY: all
all: build ## build everything

.PHONY: build
build: ## compile every package, and bin/datbench
	go build ./...
	go build $(PROFILE) -o bin/datbench ./cmd/datbench

# These lanes start programs and wait for them, so make test runs them at the same time. make test-all does not, because in
# full some of these programs poll at both ends, and need both processors.
TOGETHER_LANES := programs documents services provider-test

.PHONY: test
test: reset deps lint race plain fuzz ## everything this host can run in minutes; what it cannot, with the reason
	@$(MAKE) --no-print-directory -k -j3 --output-sync=target TOGETHER=1 $(TOGETHER_LANES)
	@$(LANE) -summary

# All lanes in full, also those that are slow or need emulated machines. Run before a release.
ALL_LANES := lint race plain debug sim conformance fuzz provider-memcheck provider-race peers-test vm nics

.PHONY: test-all
test-all: reset deps ## all lanes, in full, emulated machines too; writes docs/TESTED.md (root, an hour)
	@for l in $(ALL_LANES) $(TOGETHER_LANES); do $(MAKE) --no-print-directory $$l SHORT= FUZZTIME=30s SEEDS=20000 || $(LANE) -failed $$l; done
	@$(LANE) -report docs/TESTED.md

.PHONY: reset
reset: $(LANE)
	@$(LANE) -reset

.PHONY: deps
deps: $(LANE) ## install what tests need (root, Debian), or say what will be skipped
	@tools/deps.sh

.PHONY: lint
lint: $(LANE) bin/golangci-lint tidy-check cross ## go vet, gofmt, golangci-lint, the import table, the promised API, shellcheck, go mod tidy, cross builds
	@$(LANE) gofmt tools/gofmt.sh
	@$(LANE) vet go vet ./...
	@$(LANE) vet-peers go -C bench/peers vet ./...
	@$(LANE) vet-services go -C examples/services vet ./...
	@$(LANE) imports go test ./internal/checks -run 'TestImport|TestArchitectureTable'
	@$(LANE) api go run ./internal/checks/api
	@$(LANE) golangci-lint bin/golangci-lint run
	@$(LANE) golangci-lint-peers env -C bench/peers $(CURDIR)/bin/golangci-lint run
	@$(LANE) golangci-lint-services env -C examples/services $(CURDIR)/bin/golangci-lint run
	@if command -v shellcheck >/dev/null; then $(LANE) shellcheck shellcheck .ci/run bench/*.sh tools/*.sh tools/vm-init vagrant/*.sh; fi

.PHONY: tidy-check
tidy-check: $(LANE) ## go.mod and go.sum say what the code needs
	@$(LANE) tidy go mod tidy -diff
	@$(LANE) tidy-peers go -C bench/peers mod tidy -diff
	@$(LANE) tidy-services go -C examples/services mod tidy -diff

# Programs may rely on the exported API of a release until an [API change] line in CHANGELOG.md announces a change.
VERSION ?= $(shell ls api | sort -V | tail -1 | sed 's/\.txt$$//')

.PHONY: api
api: ## api/VERSION.txt: what the public packages export, at a release (VERSION=v0.2.0; the newest without)
	go run ./internal/checks/api -write api/$(VERSION).txt

.PHONY: cross
cross: $(LANE) ## builds for arm64; go vet for macOS and Windows
	@$(LANE) cross tools/cross.sh

.PHONY: race
race: $(LANE) ## the tests of all libraries under the race detector, shuffled; as root over real AF_XDP in throw-away namespaces
	@$(LANE) -test race go test -json -vet=off $(SHORT) -race -shuffle=on -p 3 -timeout 20m $(ISOLATED) $(TEST_PKGS)

.PHONY: programs
programs: $(LANE) ## datbench and the examples as processes; with SHORT= under the race detector
	@$(LANE) -test programs go test -json -vet=off $(or $(SHORT),-race) -shuffle=on -p 2 -timeout 20m $(ISOLATED) $(PROGRAMS)

.PHONY: plain
plain: $(LANE) ## what the race detector spoils or takes too long for, without it, and every benchmark once
	@$(LANE) -test plain go test -json -vet=off $(SHORT) -shuffle=on -p 3 -timeout 20m $(ISOLATED) \
		-run "$$(tools/plain.sh run)" $$(tools/plain.sh packages)
	@# go test runs packages with benchmarks one after the other.
	@$(LANE) -test benchmarks go test -json -vet=off $(SHORT) -timeout 20m $(ISOLATED) \
		-run '^$$' -bench . -benchtime 1x $$(tools/plain.sh benchmarks)

.PHONY: debug
debug: $(LANE) ## a build that panics where an engine is called by a goroutine that does not own it
	@$(LANE) debug-vet go vet -tags datxdpdebug ./wire ./dat/...
	@$(LANE) -test debug go test -tags datxdpdebug -json -vet=off -short -run 'Ownership|Doorbell|Engines|Stress|Close|Wait|TestConformance/sim' \
		./wire ./dat ./dat/internal/progress

.PHONY: sim
sim: $(LANE) ## the protocol on a simulated network, SEEDS=n seeds
	@DATXDP_SEEDS=$(SEEDS) $(LANE) -test -show '([0-9]+ (secure )?seeds( of trouble)?, [0-9]+ failures|seed [0-9]+ failed).*' sim \
		go test -json -vet=off -run '^Test(Secure)?(Scenarios|AfterTrouble)$$' -timeout 24h ./wire

.PHONY: conformance
conformance: $(LANE) ## every rule of uDAPL, on every link this host has (AF_XDP as root)
	@DATXDP_CONFORMANCE=1 $(LANE) -test -show '[0-9]+ rules, [0-9]+ failures' conformance \
		go test -json -vet=off -run '^TestConformance' -timeout 15m ./dat

.PHONY: network
network: ## many senders, long paths, faults and TCP beside ours, in virtual time; writes docs/NETWORK.md (ten minutes)
	@go run ./internal/network/measure -targets -seeds 10 -write docs/NETWORK.md $(ARGS)

.PHONY: fuzz
fuzz: $(LANE) ## every fuzz target for FUZZTIME=1s
	@$(LANE) fuzz tools/fuzz.sh $(FUZZTIME)

.PHONY: documents
documents: $(LANE) ## the commands of the examples, with SHORT= of every document, in a copy of the repository
	@$(LANE) -test documents go test -json -vet=off $(or $(SHORT),-race) -timeout 10m $(ISOLATED) ./internal/checks/docs

# A module of its own: who imports this one does not get quic-go and gRPC with it.
.PHONY: peers-test
peers-test: $(LANE) ## bench/peers: libraries and tools beside datbench, shortened; as root in namespaces
	@$(LANE) -test "peers (-race)" go -C bench/peers test -json -vet=off -race -shuffle=on -p 1 -timeout 8m ./...

# A module of its own too.
.PHONY: services
services: $(LANE) ## examples/services: net/http, gRPC and others over streams and over TCP; as root over AF_XDP
	@$(LANE) -test "services (-race)" go -C examples/services test -json -vet=off $(SHORT) -race -shuffle=on -p 1 -timeout 20m $(ISOLATED) ./...

.PHONY: provider
provider: ## bin/libdatxdp.so, for C programs with libdat2 (needs gcc and libdapl-dev)
	CGO_ENABLED=1 go build $(PROFILE) -tags datprovider -buildmode=c-shared -trimpath -o $(PROVIDER) \
		-ldflags="-s -w $(PROVIDER_LDFLAGS) -extldflags=-Wl,--version-script=$(CURDIR)/cmd/libdatxdp/vs.map" ./cmd/libdatxdp
	@rm -f $(PROVIDER:.so=.h)

.PHONY: provider-test
provider-test: $(LANE) ## Debian's uDAPL test programs and our own in C, over AF_XDP and UDP (root, dapl2-utils)
	@if command -v gcc >/dev/null && [ -e /usr/include/dat2/udat.h ]; then \
		$(MAKE) -s provider; \
		$(LANE) provider-vet go vet -tags datprovider ./cmd/libdatxdp; \
		[ ! -x bin/golangci-lint ] || $(LANE) provider-lint bin/golangci-lint run --build-tags datprovider,memcheck ./cmd/libdatxdp/...; \
		DATXDP_PROVIDER=$(CURDIR)/$(PROVIDER) $(LANE) -test -show '(post: .* ns|write: .* ratio .*)' provider \
			go test -tags datprovider -json -vet=off $(SHORT) -v -count=1 -parallel 4 -timeout 75m ./cmd/libdatxdp; \
	else \
		$(LANE) -skip "no gcc or no libdapl-dev: make deps installs them as root" provider; \
	fi

# Symbols, and no clones of functions: testdata/valgrind.supp tells C from Go by the dot in a name.
MEMCHECK_CFLAGS := -g -fno-ipa-cp -fno-ipa-sra -fno-ipa-icf -fno-partial-inlining -fno-reorder-blocks-and-partition

.PHONY: provider-memcheck
provider-memcheck: $(LANE) ## valgrind over what the C provider has in C (root, valgrind)
	CGO_ENABLED=1 CGO_CFLAGS="$(MEMCHECK_CFLAGS)" go build -tags datprovider -buildmode=c-shared -trimpath -o bin/memcheck.so \
		-ldflags="$(PROVIDER_LDFLAGS) -extldflags=-Wl,--version-script=$(CURDIR)/cmd/libdatxdp/vs.map" ./cmd/libdatxdp
	@rm -f bin/memcheck.h
	@go vet -tags 'datprovider memcheck' ./cmd/libdatxdp
	@DATXDP_PROVIDER=$(CURDIR)/bin/memcheck.so $(LANE) -test memcheck \
		go test -tags 'datprovider memcheck' -json -vet=off -v -count=1 -run TestMemcheck -timeout 20m ./cmd/libdatxdp

# The race detector knows memory at low addresses only: the library is made for one, and LD_USE_LOAD_BIAS tells
# glibc to keep to it. A program ends at its first race, and does not say that it passed.
.PHONY: provider-race
provider-race: $(LANE) ## the test programs with a C provider that has the race detector (root, dapl2-utils)
	@go test -race -tags datprovider -vet=off -run 'Table|Handle|Introduce|LookUp' ./cmd/libdatxdp
	CGO_ENABLED=1 go build -race -tags datprovider -buildmode=c-shared -trimpath -o bin/race.so \
		-ldflags="$(PROVIDER_LDFLAGS) -extldflags=-Wl,-Ttext-segment=0x20000000,--version-script=$(CURDIR)/cmd/libdatxdp/vs.map" ./cmd/libdatxdp
	@rm -f bin/race.h
	@DATXDP_PROVIDER=$(CURDIR)/bin/race.so LD_USE_LOAD_BIAS=1 GORACE="halt_on_error=1 exitcode=66 atexit_sleep_ms=0" $(LANE) -test provider-race \
		go test -tags datprovider -json -vet=off -short -v -count=1 -parallel 4 -timeout 30m -run 'TestCalls|TestFunction|TestTransaction|TestDTest|TestLoss' ./cmd/libdatxdp

.PHONY: install
install: provider ## the library, its manual page and a sample dat.conf under DESTDIR and PREFIX
	install -D -m 755 $(PROVIDER) $(DESTDIR)$(PREFIX)/lib/libdatxdp.so
	install -D -m 644 cmd/libdatxdp/libdatxdp.7 $(DESTDIR)$(PREFIX)/share/man/man7/libdatxdp.7
	sed 's|@LIBDIR@|$(PREFIX)/lib|' cmd/libdatxdp/dat.conf.in >bin/dat.conf
	install -D -m 644 bin/dat.conf $(DESTDIR)$(PREFIX)/share/datxdp/dat.conf

.PHONY: bench
bench: ## the main job: two hosts over AF_XDP beside raw AF_XDP and kernel TCP; ARGS= go to datbench
	@go build $(PROFILE) -o bin/datbench ./cmd/datbench
	@./bin/datbench $(ARGS)

.PHONY: peers
peers: ## UCX, libfabric, sockperf, iperf3, Go's net, TLS, quic-go and gRPC beside datbench (root); ARGS= go to bench/peers.sh
	@bench/peers.sh $(ARGS)

.PHONY: perf
perf: ## ratios to raw AF_XDP and kernel TCP, five runs in turns, against committed bounds; then beside busy loops (root, four minutes)
	@go build $(PROFILE) -o bin/datbench ./cmd/datbench
	@rm -f bin/perf.json
	@./bin/datbench --full --repeat 5 --json bin/perf.json $(ARGS) || [ $$? -eq 1 ] # 1: check looks at what is valid
	@./bin/datbench check bin/perf.json
	@DATXDP_PERF=1 go test -count=1 -vet=off -v -run '^TestBusyHosts$$' -timeout 10m $(ISOLATED) ./dat

.PHONY: vm
vm: $(LANE) ## the scripts of vagrant/ on two emulated machines with Debian's kernel (root, x86_64, five minutes)
	@$(LANE) vm tools/vm.sh machines

.PHONY: vm-fetch
vm-fetch: ## what the machines of make vm and make nics boot, kept in ~/.cache/datxdp (root, x86_64, Debian 12)
	@tools/vm.sh fetch

.PHONY: nics
nics: $(LANE) ## emulated NICs under Debian's kernels, the listed subset; writes docs/DRIVERS.md (root, x86_64, Debian 12, ten minutes)
	@$(LANE) nics tools/vm.sh nics

.PHONY: nics-all
nics-all: ## the same with every kernel, driver, mode, MTU and number of queues
	@tools/vm.sh nics all

.PHONY: screenshot
screenshot: ## docs/report.png: the page of one run of the main job, as a browser shows it (chromium)
	@go build $(PROFILE) -o bin/datbench ./cmd/datbench
	@tools/screenshot.sh docs/report.png $(ARGS)

.PHONY: soak
soak: ## open and close one queue ten thousand times (root)
	DATXDP_SOAK=1 go test -v -run 'OpenClose|Soak' -timeout 6h ./xdp

.PHONY: profile
profile: ## cmd/datbench/default.pgo: where the engine spends its time, for the compiler (root, a minute)
	go test ./dat -vet=off -run '^$$' -bench 'RoundTrip64|Messages64|Frames|StreamSend64|Write1M' -benchtime 2s -o /dev/null \
		-cpuprofile $(CURDIR)/cmd/datbench/default.pgo

.PHONY: generate
generate: ## rebuild what is generated and committed (clang, llvm-strip)
	go generate ./...

.PHONY: clean
clean: ## remove what the build made
	rm -rf bin

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(LANE): $(wildcard internal/checks/lane/*.go)
	@go build -o $@ ./internal/checks/lane

# Pinned in a module of its own: its two hundred dependencies are nobody else's.
bin/golangci-lint: tools/go.mod tools/go.sum
	@echo "== building golangci-lint"
	@go -C tools build -o ../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@
