# All tasks of developers and CI in this repository. `make` alone prints help.
SHELL      := /bin/bash
OUT        := _output
BIN        := $(OUT)/bin
GO         ?= go
ROUNDS     ?= 5
ROWS       ?= .
KUBECTL_VERSION := v1.37.2
DELVE      ?= dlv

# What --version prints: a tag such as v1.2.3, a tag with the number of commits since it, or a revision.
VERSION    := $(shell git describe --tags --always --dirty 2>/dev/null)
LDFLAGS    := -X github.com/platform-ai/platform/pkg/version.version=$(VERSION)
TOOLS      := $(GO) tool -modfile=hack/tools/go.mod
KUBE_LD    := -X k8s.io/component-base/version.gitVersion=$(KUBECTL_VERSION) -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37

# The cluster for the tests. As root it also has a node in a network namespace, if the machine permits that.
CLUSTER_DIR ?= /tmp/platform-test
ROOT        := $(shell test "$$(id -u)" = 0 && unshare --net --mount --pid --fork true 2>/dev/null && echo yes)
NETNS       ?= $(if $(ROOT),platform-test)
CLUSTER     := CLUSTER_DIR=$(CLUSTER_DIR) test/cluster/cluster.sh

# What tests use where npm is installed: the vendors' JavaScript clients, the OpenID provider, and the compiler that checks the
# types of the console's page.
NPM_PAGE    := pkg/console/web/node_modules/.package-lock.json
NPM_CLIENTS := $(foreach d,test/compat/npm test/identity/npm,$d/node_modules/.package-lock.json) $(NPM_PAGE)

# The programs that run in a cluster, and their images' names.
IMAGES       := $(filter-out platform-standalone platform-worker-command,$(notdir $(wildcard cmd/platform-*)))
IMAGE_PREFIX ?= platform.ai/
IMAGE_TAG    ?= dev
export IMAGE_PREFIX IMAGE_TAG

# Lint vets, once; vetting in each test would analyse all dependencies again. Nobody debugs the binaries of these tests, and linking
# them without debugging information takes half as long.
TESTFLAGS := -vet=off -ldflags=-w
export TESTFLAGS GO

# Without cgo the programs are static and smaller in memory; the race detector needs it.
export CGO_ENABLED ?= 0

.DEFAULT_GOAL := help
.PHONY: help build kubectl etcd scriptedmodel generate verify fmt lint test test-unit race race-unit compile-tests fuzz bench robustness figures figures-long e2e demo run debug release clean
.PHONY: images control cluster cluster-up cluster-down

help: ## print this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-13s %s\n", $$1, $$2}'

build: ## build every program into _output/bin
	$(GO) build -ldflags "$(LDFLAGS)" -o $(BIN)/ ./cmd/...
	ln -sf platform $(BIN)/kubectl-platform

kubectl: ## build the real kubectl that demo and tests use
	cd test/kubectl && $(GO) build -ldflags "$(KUBE_LD)" -o ../../$(BIN)/kubectl .

etcd: ## build the real etcd that the benchmark compares with
	cd test/bench/etcd && $(GO) build -o ../../../$(BIN)/etcd go.etcd.io/etcd/server/v3

scriptedmodel: ## build the scripted stand-in for a model vendor
	$(GO) build -o $(BIN)/ ./test/scriptedmodel

generate: ## write all generated code, the roles' manifest, the chart, the reference and the console's page anew
	hack/update-codegen.sh
	$(GO) test ./pkg/server/host/rbac -run TestManifest -rewrite
	hack/console.sh
	cd hack/chart && $(GO) run .

verify: ## fail if generated code, the reference, the console's page or go.mod is not current
	hack/verify.sh

fmt: ## format all Go code as lint wants it
	$(TOOLS) golangci-lint fmt

lint: ## golangci-lint, at the pinned version; vet is one of its linters
	$(TOOLS) golangci-lint config verify
	$(TOOLS) golangci-lint run ./...

test-unit: ## tests that need no cluster and no built programs; ARGS='-run TestName' and PKG=./pkg/event/... narrow it
	$(GO) test $(TESTFLAGS) $(or $(PKG),./pkg/... ./hack/reference/... ./test/arch/... ./test/corpus/...) $(ARGS)

$(NPM_CLIENTS): %/node_modules/.package-lock.json: %/package-lock.json
	npm ci --prefix $* --ignore-scripts --no-audit --no-fund

# How many packages are tested at a time: more than there are processors, because many mostly wait.
AT_A_TIME := $(shell n=$$(nproc); echo $$((n < 3 ? 3 : n)))

# What runs under the race detector: the packages that hack/raced.sh finds, and of the integration tests those in which many act at
# once. With RACE=1, "make test" runs these packages so and not once more without it, except expression, whose bounds on memory
# hold only without it.
RACED   := GORACE=atexit_sleep_ms=50 PLATFORM_BIN=$(CURDIR)/$(BIN) CGO_ENABLED=1 hack/gotest.sh -race $(TESTFLAGS) -p $(AT_A_TIME) -timeout 30m
AT_ONCE := AtOnce|Storm|Watch|Slow|Shutdown|OneDecision|OneSlot|Turn|Background|BusySession|GoesAway|Rates
ONCE    := $(if $(RACE),| grep -v -x -F -f <(hack/raced.sh))

# Packages below test come first: their tests wait for servers, which the others fill.
test: build kubectl scriptedmodel control $(if $(shell command -v npm),$(NPM_CLIENTS)) ## all tests but e2e and robustness: unit, conformance, integration, behind a real kube-apiserver; RACE=1: with "make race", and unit tests only there
	$(if $(RACE),$(MAKE) race)
	PLATFORM_BIN=$(CURDIR)/$(BIN) hack/gotest.sh $(TESTFLAGS) -p $(AT_A_TIME) -timeout 45m $$($(GO) list ./test/... ./... | grep -v -e /test/e2e$$ -e /test/robustness$$ $(ONCE)) $(if $(RACE),./pkg/server/expression)
	cd hack/images && $(GO) test $(TESTFLAGS) ./...
	cd hack/chart && $(GO) test $(TESTFLAGS) ./...
	cd test/alerts && $(GO) test $(TESTFLAGS) ./...

race-unit: build kubectl scriptedmodel ## unit tests under the race detector
	$(RACED) $$(hack/raced.sh)

race: race-unit ## unit tests, and integration tests in which many act at once, under the race detector
	$(RACED) ./test/integration -run '$(AT_ONCE)'

compile-tests: ## compile what "make test RACE=1" tests; it is linked there, because Go keeps no linked tests
	CGO_ENABLED=1 $(GO) list -race -test -export $$(hack/raced.sh) ./test/integration >/dev/null
	$(GO) list -test -export $$($(GO) list ./... | grep -v -x -F -f <(hack/raced.sh)) >/dev/null

fuzz: ## each fuzz test for a few seconds
	hack/fuzz.sh

bench: build etcd kubectl control ## our store beside etcd, our server beside kube-apiserver, events beside fsync; writes _output/bench.json
	$(GO) run ./test/bench -etcd $(BIN)/etcd -bin $(BIN) -kube $(OUT)/cluster/bin -rows '$(ROWS)' -out $(OUT)/bench.json

robustness: build kubectl scriptedmodel ## kill -9 under load; ROUNDS=n
	PLATFORM_BIN=$(CURDIR)/$(BIN) ROUNDS=$(ROUNDS) hack/gotest.sh $(TESTFLAGS) -count=1 -v -timeout 60m ./test/robustness

$(BIN)/helm: hack/chart/go.mod
	cd hack/chart && $(GO) build -o ../../$@ helm.sh/helm/v3/cmd/helm

figures: $(NPM_PAGE) ## what long runs cost the console's page, beside the aims, in two minutes
	CONSOLE_SIZES=5000,100000 CONSOLE_SPANS=10000 CONSOLE_RUNS=3 $(GO) test $(TESTFLAGS) -count=1 -v -timeout 10m ./test/console -run TestFigures

figures-long: build $(NPM_PAGE) ## the same for a million events, and what ten minutes of following cost while the server is killed 20 times
	CONSOLE_SIZES=100000,1000000 CONSOLE_SPANS=10000 CONSOLE_RUNS=3 $(GO) test $(TESTFLAGS) -count=1 -v -timeout 1h ./test/console -run TestFigures
	CONSOLE_LIVE=10m CONSOLE_KILLS=20 PLATFORM_BIN=$(CURDIR)/$(BIN) $(GO) test $(TESTFLAGS) -count=1 -v -timeout 1h ./test/console -run TestLive

e2e: build kubectl scriptedmodel cluster $(BIN)/helm ## whole runs on both hosts: real processes, and a real cluster (with a node for root)
	hack/images.sh $(IMAGES) test-model
	CLUSTER_DIR=$(CLUSTER_DIR) NETNS=$(NETNS) PLATFORM_BIN=$(CURDIR)/$(BIN) hack/e2e.sh $(ARGS)

images: ## write the images for a cluster to _output/images, as OCI tarballs
	hack/images.sh $(IMAGES)

control: ## build the control plane of it
	test/cluster/build.sh control

cluster: ## build the real Kubernetes of the tests: minutes the first time on a machine
	test/cluster/build.sh $(if $(NETNS),all,control)

cluster-up: cluster ## start it, with a node for root; see test/cluster/cluster.sh
	NETNS=$(NETNS) $(CLUSTER) up
	$(if $(NETNS),$(CLUSTER) node)

cluster-down: ## end it and put the machine back as it was
	$(CLUSTER) delete

demo: build kubectl scriptedmodel ## one task from kubectl apply to its result; nothing is left running
	hack/demo.sh

run: build kubectl scriptedmodel ## start the server on ./_data and leave it running
	hack/run.sh

debug: ## start the server on ./_data under the debugger dlv; ARGS are flags of the server
	DELVE='$(DELVE)' hack/debug.sh $(ARGS)

release: ## write archives, images and SHA256SUMS of this commit to _output/release; two runs write the same bytes
	VERSION='$(VERSION)' hack/release.sh $(IMAGES)

clean: ## remove what was built
	rm -rf $(OUT)
