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
# Programs are linked without debugging information, in half the time; "make debug" builds those that a debugger can follow.
LDFLAGS    := -s -w -X github.com/platform-ai/platform/pkg/version.version=$(VERSION)
# grpc shows traces of its requests as pages made from templates. A program that can execute a template keeps all methods of all its
# types, because templates call methods by name: platform-standalone is a quarter larger. Nothing here shows these pages. All commands
# get the tag, tests too, so that packages are compiled once.
NO_TRACE   := -tags=grpcnotrace
export GOFLAGS := $(strip $(filter-out $(NO_TRACE),$(GOFLAGS)) $(NO_TRACE))
TOOLS      := $(GO) tool -modfile=hack/tools/go.mod
KUBE_LD    := -s -w -X k8s.io/component-base/version.gitVersion=$(KUBECTL_VERSION) -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37

# The cluster for the tests. As root it also has a node in a network namespace, if the machine permits that.
CLUSTER_DIR ?= /tmp/platform-test
ROOT        := $(shell test "$$(id -u)" = 0 && unshare --net --mount --pid --fork true 2>/dev/null && echo yes)
NETNS       ?= $(if $(ROOT),platform-test)
CLUSTER     := CLUSTER_DIR=$(CLUSTER_DIR) test/cluster/cluster.sh

# What tests use where npm is installed: the vendors' JavaScript clients, the OpenID provider, and the compiler that checks the
# types of the console's page.
NPM_PAGE    := pkg/console/web/node_modules/.package-lock.json
NPM_CLIENTS := $(foreach d,test/compat/npm test/identity/npm,$d/node_modules/.package-lock.json) $(NPM_PAGE)

# The clients that strangers use, in a folder of their own, because they take 1.7 GB: coding agents, frameworks, and the Node that they need.
NPM_STRANGERS := test/compat/clients/node_modules/.package-lock.json
NPM_AGENTS    := test/codingagents/npm/node_modules/.package-lock.json
# GitHub's OpenAPI description and what checks requests against it.
NPM_GITHUB    := test/githubapi/npm/node_modules/.package-lock.json

# The programs that run in a cluster, and their images' names.
IMAGES       := $(filter-out platform-standalone platform-worker-command platform-workspace,$(notdir $(wildcard cmd/platform-*)))
IMAGE_PREFIX ?= platform.ai/
IMAGE_TAG    ?= dev
export IMAGE_PREFIX IMAGE_TAG

# What the demo and "make run" start. For them an installed kubectl will do, from 1.30 on; tests use the one that is built here.
DEMO        := $(addprefix ./cmd/,platform platform-standalone platform-worker platform-worker-command platform-workspace) $(addprefix ./test/,scriptedmodel scriptedagent repositoryhost)
KUBECTL_NEW := kubectl version --client --output=json 2>/dev/null | grep -Eq '"minor": "([3-9][0-9]|[1-9][0-9]{2})'

# The tests are in three tiers; CONTRIBUTING.md has the table. What a test needs decides which tier runs it: kit.Needs in the test, or
# its package here. All others are quick: they need Go and the programs of this repository.
NEEDS_CONTROL := test/aggregated test/manifests test/rbac
NEEDS_NODE    := test/cluster test/e2e test/kubernetes test/manifests/uninstall
NEEDS_BROWSER := test/console
NEEDS_MINUTES := test/robustness
NEEDS_FORGE   := test/integration/pullrequest test/forge pkg/codehost/codehosttest pkg/codehost/gitea pkg/codehost/providers pkg/codehost/pullrequest pkg/codehost/webhook
# What the gate does of them. Through both hosts: install, a task of each type, kubectl, approval, fork, uninstall. In a browser: each
# view is opened once.
WALK_NODE     := -run '^(TestDemo|TestFork|TestCommand|TestUninstall)$$/^(standalone|cluster|with-server)$$'
WALK_BROWSER  := -run '^TestViews$$'
# Under the race detector, the packages where a race would lose data or secrets, and the loop of agents. Acceptance has all of hack/raced.sh.
RACED         := $(addprefix ./pkg/,$(addprefix storage/,engine engine/local object eventlog blob transcript turn recording ledger spending custody) \
	server/gateway server/connection server/registry/timeline server/registry/resource controller/task worker/spool agentloop)
RACE          := CGO_ENABLED=1 GORACE=atexit_sleep_ms=50
# The parts of "make acceptance", in their order: part-NAME is how one is run. PARTS selects some.
ACCEPTANCE    := code quick modules race clients forge agents control node robustness console fuzz demo release
PARTS         ?=

quick = $$($(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./... | grep -v $(NEEDS_CONTROL:%=-e /%$$) $(NEEDS_NODE:%=-e /%$$) $(NEEDS_BROWSER:%=-e /%$$) $(NEEDS_MINUTES:%=-e /%$$))
with  = PLATFORM_TEST_WITH=$(1) PLATFORM_BIN=$(CURDIR)/$(BIN) hack/gotest.sh

# Lint vets, once; vetting in each test would analyse all dependencies again. Nobody debugs the binaries of these tests, and without
# debugging information and symbols they are linked in half the time. The time limit only ends tests that hang.
TESTFLAGS := -vet=off -ldflags=-s -timeout=30m
export TESTFLAGS GO

# Without cgo the programs are static and smaller in memory; the race detector needs it.
export CGO_ENABLED ?= 0

.DEFAULT_GOAL := help
.PHONY: help build kubectl etcd scriptedmodel tier generate kind verify fmt lint test test-quick test-unit acceptance modules race race-gate fuzz bench robustness console figures figures-long e2e demo demo-gateway run debug release clean
.PHONY: images programs clients agents forge control cluster cluster-up cluster-down npm chat prosody walk-node walk-browser

help: ## print this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-13s %s\n", $$1, $$2}'

build: ## build every program into _output/bin
	$(GO) build -ldflags "$(LDFLAGS)" -o $(BIN)/ ./cmd/...
	ln -sf platform $(BIN)/kubectl-platform

kubectl: ## build the real kubectl that demo and tests use
	cd test/kubectl && $(GO) build -ldflags "$(KUBE_LD)" -o ../../$(BIN)/kubectl .

etcd: ## build the real etcd that the benchmark compares with
	cd test/bench/etcd && $(GO) build -o ../../../$(BIN)/etcd go.etcd.io/etcd/server/v3

scriptedmodel: ## build the scripted stand-ins for a model vendor and for a coding agent
	$(GO) build -ldflags "$(LDFLAGS)" -o $(BIN)/ ./test/scriptedmodel ./test/scriptedagent

programs: ## build what the demo needs, and kubectl where none that is new enough is installed
	$(GO) build -ldflags "$(LDFLAGS)" -o $(BIN)/ $(DEMO)
	ln -sf platform $(BIN)/kubectl-platform
	@$(KUBECTL_NEW) || $(MAKE) --no-print-directory kubectl

tier: ## build what runs a tier of the tests
	$(GO) build -o $(BIN)/ ./hack/tier
	cd hack/tools && $(GO) build -o ../../$(BIN)/ gotest.tools/gotestsum

generate: ## write all generated code, the roles' manifest, the chart, the reference and the console's page anew
	hack/update-codegen.sh
	$(GO) test ./pkg/server/host/rbac -run TestManifest -rewrite
	hack/console.sh
	cd hack/chart && $(GO) run .

kind: ## write the skeleton of a new kind: NAME=Widget
	$(GO) run ./hack/kind $(NAME)

verify: ## fail if generated code, the roles, the reference, the console's page or go.mod is not current
	hack/verify.sh

fmt: ## format all Go code as lint wants it
	$(TOOLS) golangci-lint fmt

lint: ## golangci-lint, at the pinned version; vet is one of its linters
	$(TOOLS) golangci-lint config verify
	$(TOOLS) golangci-lint run ./...

test-unit: ## one package, one test: PKG=./pkg/event/... ARGS='-run TestName -v'
	$(GO) test $(TESTFLAGS) $(or $(PKG),./pkg/... ./hack/reference/... ./test/arch/... ./test/corpus/...) $(ARGS)

test: build kubectl scriptedmodel tier ## all tests that need neither a Kubernetes nor a browser nor minutes: unit, conformance of the store, integration
	$(BIN)/tier run -rest 'make acceptance' test $(MAKE) --no-print-directory test-quick

# Without -count=1 Go keeps the results of packages that did not change. What needs a code host runs here only if that is built already.
test-quick:
	$(call with,$(if $(wildcard $(OUT)/forge/gitea),forge)) quick "$(quick)" $(TESTFLAGS) $(ARGS)

$(NPM_CLIENTS) $(NPM_STRANGERS) $(NPM_AGENTS) $(NPM_GITHUB): %/node_modules/.package-lock.json: %/package-lock.json
	npm ci --prefix $* --ignore-scripts --no-audit --no-fund

npm: $(NPM_CLIENTS) ## install the JavaScript clients of the tests, and what checks the console's page

clients: build kubectl scriptedmodel tier $(NPM_STRANGERS) ## coding agents and frameworks from npm on the vendors' APIs; prints what works
	$(call with,clients) clients ./test/compat $(TESTFLAGS) -count=1 -v -run 'TestClients|TestCodingAgent' $(ARGS)

agents: build kubectl scriptedmodel tier forge $(NPM_AGENTS) ## coding agents from npm as the programs of tasks, on a real code host
	$(call with,agents$(comma)forge) agents ./test/codingagents $(TESTFLAGS) -count=1 $(ARGS)

# The packages that hack/raced.sh finds: those in which things happen at once. Acceptance runs their tests that need minutes, too.
race: build kubectl scriptedmodel tier ## the packages where things happen at once, under the race detector
	$(RACE) $(call with,$(RACE_WITH)) race "$$(hack/raced.sh) ./hack/tier" -race $(TESTFLAGS) -timeout=60m $(ARGS)

race-gate: build kubectl scriptedmodel tier ## of these packages those where a race would lose data or secrets
	$(RACE) $(call with,) race-gate "$(RACED)" -race $(TESTFLAGS) $(ARGS)

modules: tier ## tests of the modules that build images, write the chart and check the alerts, and of the adapters of chat systems
	cd hack/images && ../gotest.sh images ./... $(TESTFLAGS)
	cd hack/chart && ../gotest.sh chart ./... $(TESTFLAGS)
	cd test/alerts && ../../hack/gotest.sh alerts ./... $(TESTFLAGS)
	cd artifacts/gateways && ../../hack/gotest.sh gateways ./... $(TESTFLAGS)

console: build kubectl scriptedmodel tier npm ## the console in a real browser; ARGS='-run TestViews'
	$(call with,browser$(comma)npm) console "$(NEEDS_BROWSER:%=./%)" $(TESTFLAGS) -count=1 $(ARGS)

# The gate's own steps; .ci/run has their order.
walk-node: ARGS = $(WALK_NODE)
walk-node: NEEDS_NODE = test/e2e test/manifests/uninstall
walk-node: e2e
walk-browser: ARGS = $(WALK_BROWSER)
walk-browser: console

acceptance: tier ## everything, in parts, of which those that passed on this commit are kept; PARTS='node fuzz' runs only these
	$(BIN)/tier parts -only '$(PARTS)' acceptance $(ACCEPTANCE)

.PHONY: $(ACCEPTANCE:%=part-%)
part-code: verify lint
part-quick: build kubectl scriptedmodel tier npm
	$(call with,minutes$(comma)npm) quick "$(quick)" $(TESTFLAGS) -count=1
part-modules: modules
part-race: RACE_WITH = minutes
part-race: race # and of the integration tests those in which many act at once, but for one that measures how fast it writes
	$(RACE) $(call with,minutes) race-at-once "$(AT_ONCE_IN)" -race $(TESTFLAGS) -timeout=60m -run '$(AT_ONCE)' -skip '^TestSlowStreamIsCut$$'
part-clients: clients $(NPM_GITHUB)
	$(call with,clients) github-contract ./pkg/codehost/codehosttest $(TESTFLAGS) -count=1 -v -run '/contract'
part-forge: build scriptedmodel forge tier
	$(call with,forge) forge "$(NEEDS_FORGE:%=./%)" $(TESTFLAGS) -count=1
	$(call with,forge$(comma)minutes) forge-monitors ./test/integration/monitor $(TESTFLAGS) -count=1 -run '/gitea'
part-agents: agents $(NPM_STRANGERS)
	$(call with,clients$(comma)forge) agents-of-clients ./test/codingagents $(TESTFLAGS) -count=1
part-control: build kubectl scriptedmodel tier control
	$(call with,control-plane) control "$(NEEDS_CONTROL:%=./%) ./test/router" $(TESTFLAGS) -count=1 -p 1
part-node: WITH = minutes
part-node: prosody e2e
part-robustness: robustness
part-console: console figures figures-long
part-fuzz: fuzz
part-demo: demo
part-release: release

AT_ONCE := AtOnce|Storm|Watch|Slow|Shutdown|OneDecision|OneSlot|Turn|Background|BusySession|GoesAway|Rates
AT_ONCE_IN := $(addprefix ./test/integration/,agent chat cli event host rest task)
comma      := ,

fuzz: ## each fuzz test for a few seconds
	hack/fuzz.sh

bench: build scriptedmodel etcd kubectl control ## our store beside etcd, our server beside kube-apiserver, events beside fsync; writes _output/bench.json
	$(GO) run ./test/bench -etcd $(BIN)/etcd -bin $(BIN) -kube $(OUT)/cluster/bin -rows '$(ROWS)' -out $(OUT)/bench.json

robustness: build kubectl scriptedmodel tier ## kill -9 under load; ROUNDS=n
	ROUNDS=$(ROUNDS) $(call with,minutes) robustness "$(NEEDS_MINUTES:%=./%)" $(TESTFLAGS) -count=1 -timeout=60m $(ARGS)

$(BIN)/helm: hack/chart/go.mod
	cd hack/chart && $(GO) build -o ../../$@ helm.sh/helm/v3/cmd/helm

figures: $(NPM_PAGE) ## what long runs cost the console's page, beside the aims, in two minutes
	CONSOLE_SIZES=5000,100000 CONSOLE_SPANS=10000 CONSOLE_RUNS=3 PLATFORM_TEST_WITH=browser,npm $(GO) test $(TESTFLAGS) -count=1 -v -timeout 10m ./test/console -run TestFigures

figures-long: build $(NPM_PAGE) ## the same for a million events, and what ten minutes of following cost while the server is killed 20 times
	CONSOLE_SIZES=100000,1000000 CONSOLE_SPANS=10000 CONSOLE_RUNS=3 PLATFORM_TEST_WITH=browser,npm $(GO) test $(TESTFLAGS) -count=1 -v -timeout 1h ./test/console -run TestFigures
	CONSOLE_LIVE=10m CONSOLE_KILLS=20 PLATFORM_TEST_WITH=browser,npm PLATFORM_BIN=$(CURDIR)/$(BIN) $(GO) test $(TESTFLAGS) -count=1 -v -timeout 1h ./test/console -run TestLive

e2e: build kubectl scriptedmodel tier chat cluster $(BIN)/helm ## whole runs on both hosts: real processes, and a real cluster (with a node for root)
	hack/images.sh $(IMAGES) test-model
	CLUSTER_DIR=$(CLUSTER_DIR) NETNS=$(NETNS) PLATFORM_BIN=$(CURDIR)/$(BIN) NEEDS_NODE="$(NEEDS_NODE:%=./%)" WITH='$(WITH)' hack/e2e.sh $(ARGS)

chat: ## build an adapter and a client for the chat server of the tests, Debian's prosody
	$(GO) build -C artifacts/gateways -ldflags "$(LDFLAGS)" -o $(CURDIR)/$(BIN)/ ./cmd/xmpp-gateway ./internal/talk

prosody: # its tests are skipped where it is missing, but not in acceptance
	command -v prosody >/dev/null || apt-get install -y --no-install-recommends prosody || { apt-get update && apt-get install -y --no-install-recommends prosody; }

images: ## write the images for a cluster to _output/images, as OCI tarballs
	hack/images.sh $(IMAGES)

forge: ## build Gitea, the code host of the tests, and keep it: minutes the first time on a machine
	test/forge/build.sh

control: ## build the control plane of it
	test/cluster/build.sh control

cluster: ## build the real Kubernetes of the tests: minutes the first time on a machine
	test/cluster/build.sh $(if $(NETNS),all,control)

cluster-up: cluster ## start it, with a node for root; see test/cluster/cluster.sh
	NETNS=$(NETNS) $(CLUSTER) up
	$(if $(NETNS),$(CLUSTER) node)

cluster-down: ## end it and put the machine back as it was
	$(CLUSTER) delete

demo: programs ## tasks from kubectl apply to their results, one of a coding agent; nothing is left running
	hack/demo.sh

# The adapter for Slack is a program of another module; what stands in for Slack is one of this one.
demo-gateway: programs ## a conversation in a chat through a gateway: an adapter that goes away, a dead letter, a retry; CHAT=1 lets you write
	$(GO) build -ldflags "$(LDFLAGS)" -o $(BIN)/ ./test/slackroom
	cd artifacts/gateways && $(GO) build -ldflags "$(LDFLAGS)" -o ../../$(BIN)/ ./cmd/slack-gateway
	hack/demo-gateway.sh

run: programs ## start the server on ./_data and leave it running
	hack/run.sh

debug: ## start the server on ./_data under the debugger dlv; ARGS are flags of the server
	DELVE='$(DELVE)' hack/debug.sh $(ARGS)

release: ## write archives, images and SHA256SUMS of this commit to _output/release; two runs write the same bytes
	VERSION='$(VERSION)' hack/release.sh $(IMAGES)

clean: ## remove what was built
	rm -rf $(OUT)
