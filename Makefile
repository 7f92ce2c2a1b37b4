# Every task of the project. `make` lists them; what they need is built or installed on the way and
# kept outside the checkout in $(CACHE), except the Python environment in .venv.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.ONESHELL:
.SILENT:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# Where this is set each of hundreds of Python processes compiles all that it imports, for seconds.
unexport PYTHONDONTWRITEBYTECODE

export LAPTIME_CACHE := $(or $(LAPTIME_CACHE),$(HOME)/.cache/laptime)
CACHE := $(LAPTIME_CACHE)
# In a folder that was made for the cache, or was empty: what clean-cache may remove.
CACHE_MARK := $(CACHE)/.laptime-cache
ifneq ($(filter-out help cache clean clean-cache,$(or $(MAKECMDGOALS),help)),)
$(shell [ -n "$$(ls -A "$(CACHE)" 2>/dev/null)" ] || { mkdir -p "$(CACHE)" && touch "$(CACHE_MARK)"; })
endif
UV_VERSION := 0.13.8
NAMESPACE := laptime-system
EXAMPLE := examples/users-quick.yaml

# A cluster of one's own is used only when it is named on the command line: `make demo` must never
# start to load a cluster just because the shell has a KUBECONFIG.
ifeq ($(origin KUBECONFIG),command line)
OWN_KUBECONFIG := $(abspath $(KUBECONFIG))
else
OWN_KUBECONFIG :=
endif

# These start clusters of their own, or stop what is on this machine, and all that they call takes
# KUBECONFIG: they would label, fill and clean up a cluster that others use.
NOT_ON_YOURS := test prove parted-nodes e2e-some e2e-up-% e2e-down-% e2e-runs-% e2e-api e2e-figures e2e-cluster nodes placements \
	lost-nodes own-cpus ipv6 namespaces bench-nodes bench-lanes bench-scale chaos own-cluster takeovers frozen-kubelet
REFUSED := $(if $(OWN_KUBECONFIG),$(filter $(NOT_ON_YOURS),$(MAKECMDGOALS)))
ifneq ($(REFUSED),)
$(error make $(firstword $(REFUSED)) starts clusters of its own, or stops what is on this machine; tests on yours: make e2e KUBECONFIG=$(OWN_KUBECONFIG))
endif

# Nor may a shell that has a word of these names make less be checked, or something else.
unexport PYTEST_ADDOPTS LAPTIME_SERVER_BINARIES
ifneq ($(origin ONLY),command line)
ONLY :=
endif
ifneq ($(origin FAILED),command line)
FAILED :=
endif
ifneq ($(origin CHANGED),command line)
CHANGED :=
endif

# A tag of a CI's own would be pushed and asked for unseen.
ifneq ($(origin TAG),command line)
TAG :=
endif

CLUSTER := python3 cluster/cluster.py
IMAGES := python3 images/build.py $(if $(ENGINE),--engine $(ENGINE))
FOR_PLATFORM := $(if $(PLATFORM),--platform $(PLATFORM))
VENV := .venv
PYTHON := $(VENV)/bin/python
VENV_INPUTS := operator/requirements-dev.lock operator/pyproject.toml agent/requirements.lock agent/pyproject.toml \
	dashboards/requirements.lock dashboards/pyproject.toml
VENV_STAMP := $(VENV)/.made-from-$(shell cat $(VENV_INPUTS) | sha256sum | cut -c1-16)
# What the chart uses with its own values, and what its tests need beside that.
CHART_IMAGES := operator agent exporter prometheus postgres pgbouncer haproxy k6 server-fastapi-sync server-fastapi-async server-axum-sqlx
# Every folder with a Dockerfile below images/servers is a server, and all of them are tested.
SERVER_FOLDERS := $(patsubst %/,%,$(dir $(wildcard images/servers/*/Dockerfile images/servers/*/*/Dockerfile)))
TEST_IMAGES := $(sort $(CHART_IMAGES) $(addprefix server-,$(notdir $(SERVER_FOLDERS)))) upstream delay faulty load-script reference
CRDS := crds
RESULTS_SCHEMA := docs/results.schema.json
REFERENCE := docs/reference
MYPY = $(CURDIR)/$(VENV)/bin/mypy --no-error-summary --config-file $(CURDIR)/operator/pyproject.toml \
	--cache-dir "$(CACHE)/mypy/$$(basename "$$PWD")"
GO_MODULES := cluster/go/coredns images/k6 images/exporter images/reference images/upstream images/delay images/servers/go-nethttp \
	bench/generator/server bench/servers/go dashboards/linter
UNIT_GO = $(filter-out images/k6,$(filter images/%,$(GO_MODULES)))
RUST_SERVERS := images/servers/rust
RUST_WORKSPACES := $(RUST_SERVERS) bench/servers/rust
# Rust builds of the checks, kept from one checkout to the next.
export CARGO_TARGET_DIR ?= $(CACHE)/cargo-target
# Each package of Go is compiled once, for the checks, for the node and for the images: all with one
# toolchain and the same flags, and here buildah keeps what the Dockerfiles mount as their caches.
export GOCACHE := $(CACHE)/build-cache/buildah-cache/root/.cache/go-build
export GOMODCACHE := $(CACHE)/build-cache/buildah-cache/root/go/pkg/mod
export CGO_ENABLED := 0
export GOFLAGS := -trimpath -buildvcs=false

# A recipe in which the variable itself stands is run even by `make --dry-run`, and as a whole.
AGAIN = $(MAKE)
# A line with the time of day, so that a log shows where the time went.
SAY := say() { printf '\033[1m[%(%H:%M:%S)T] %s\033[0m\n' -1 "$$*"; }; [ -t 1 ] || say() { printf '[%(%H:%M:%S)T] %s\n' -1 "$$*"; };
# Stops the cluster of the recipe, however the recipe ends.
DOWN_AT_END := down() { code=$$?; trap - EXIT INT TERM; $(CLUSTER) down || code=1; exit $$code; }; \
	trap down EXIT; trap 'exit 130' INT; trap 'exit 143' TERM;
# Stops the cluster that the recipe's tests start themselves, and in whose name nothing else is done.
DOWN_AFTER_TESTS := down() { code=$$?; trap - EXIT INT TERM; LAPTIME_CLUSTER_NAME=$$LAPTIME_TEST_CLUSTER $(CLUSTER) down || code=1; exit $$code; }; \
	trap down EXIT; trap 'exit 130' INT; trap 'exit 143' TERM;
# A cluster that only this recipe has, by the name that it has set; the images of the chart are there.
define own_cluster
$(CLUSTER) down
$(DOWN_AT_END)
$(IMAGES) $(CHART_IMAGES)
endef
# KUBECONFIG of the cluster in use, for the rest of the recipe.
USE_CLUSTER := export KUBECONFIG="$(OWN_KUBECONFIG)"; [ -n "$$KUBECONFIG" ] || KUBECONFIG="$$($(CLUSTER) kubeconfig)";

.PHONY: help
help: ## list the tasks
	echo "Laptime $$(cat VERSION): benchmarks of servers in Kubernetes. make TASK:"
	echo
	awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	echo
	echo "  KUBECONFIG=FILE  demo, install, e2e, examples, examples-quick, bench-overhead, bench-cause,"
	echo "                   bench-servers: use this cluster, not the embedded one"
	echo "  ONLY=\"users...\"  examples, examples-quick: these of users, sleep, tasks, recipes, apibench;"
	echo "                   examples alone: recipes-equal-pools, tasks-equal-pools,"
	echo "                   apibench-equal-pools, asgi-servers, cache-in-front, upgrade"
	echo "  ONLY=a,b         bench-servers: these presets, with commas"
	echo "  REGISTRY=HOST    push, demo, install: the registry that this cluster pulls from"
	echo "  TAG=NAME         with REGISTRY: this tag of the images, not the version, which may stay what it was"
	echo "  ENGINE=podman    whatever builds images: this engine, and not the first that works"
	echo "  PLATFORM=linux/amd64,linux/arm64"
	echo "                   images, push: for these platforms, not for that of this machine"

##### See it work

# Grafana comes in no package that could be built here: the embedded cluster gets the official image
# where a registry is in reach, and none elsewhere.
GRAFANA_IMAGE := docker.io/grafana/grafana:$(shell sed -n 's/.*repository: grafana\/grafana, tag: \([^,]*\),.*/\1/p' charts/laptime/values.yaml)
GRAFANA_ARCHIVE := $(CACHE)/images/grafana.tar
.PHONY: grafana-image
grafana-image:
	if [ -z "$(OWN_KUBECONFIG)" ] && [ ! -f "$(GRAFANA_ARCHIVE)" ]; then
		$(IMAGES) fetch grafana $(GRAFANA_IMAGE) 2>/dev/null ||
			echo "Grafana is left out: its image could not be fetched (is a registry in reach from here?)"
	fi

.PHONY: demo
# Others that the cache holds would only make the demo wait: a minute for all of them.
demo: LOADED_IMAGES := $(CHART_IMAGES)
# Nodes of a cluster of one's own get no label from here.
ifneq ($(if $(OWN_KUBECONFIG),,$(filter-out 1 2,$(NODES))),)
demo: PLACED := --values charts/laptime/values-three-nodes.yaml
PARTED_NODES := parted-nodes
endif
# Documents beside the run, such as its scenario, have names as well.
define NAME_OF_RUN
import sys, yaml
print(*(one["metadata"]["name"] for one in yaml.safe_load_all(open(sys.argv[1])) if one["kind"] == "BenchmarkRun"))
endef
demo: export NAME_OF_RUN := $(NAME_OF_RUN)
demo: grafana-image $(PARTED_NODES) install ## the whole way: cluster, images, chart, a first comparison, its table (NODES=3: on three nodes)
	$(SAY) $(USE_CLUSTER)
	say "Running $(EXAMPLE): two to three minutes"
	code=0
	# What ran before on a cluster of one's own may be somebody else's.
	$(VENV)/bin/laptime run $(EXAMPLE) --namespace default $(if $(OWN_KUBECONFIG),,--again) || code=$$?
	# Of another end `run` says what to type; one of this name may then be somebody else's.
	if [ $$code = 0 ]; then
		name="$$($(PYTHON) -c "$$NAME_OF_RUN" $(EXAMPLE))"
		mkdir -p out
		$(VENV)/bin/laptime report "$$name" --namespace default --file "$(CURDIR)/out/$$name.html" || code=$$?
	fi
	if [ -z "$(OWN_KUBECONFIG)" ]; then
		if [ -f "$(GRAFANA_ARCHIVE)" ]; then
			echo "Grafana, no login needed: kubectl -n $(NAMESPACE) port-forward service/laptime-grafana 3000, then http://localhost:3000"
		fi
		echo "The embedded cluster goes on running. In this shell:"
		echo "  export KUBECONFIG=$$KUBECONFIG"
		command -v kubectl >/dev/null || echo "  PATH=\"$(CACHE)/bin:\$$PATH\""
		echo "Stop it: make cluster-down"
	fi
	exit $$code

.PHONY: cluster
cluster: ## start the embedded Kubernetes, does nothing when it runs (NODES=3: with three nodes)
	$(SAY)
	say "Embedded Kubernetes"
	$(CLUSTER) up $(if $(NODES),--nodes $(NODES))

# Each part of a run has a node to itself: charts/laptime/values-three-nodes.yaml.
.PHONY: parted-nodes
parted-nodes: cluster
	$(USE_CLUSTER)
	$(CLUSTER) tools
	kubectl="$$($(CLUSTER) path kubectl)"
	"$$kubectl" get nodes --output name | paste - <(printf 'laptime=%s\n' tiers servers generators) | while read -r node part; do
		if [ -n "$$part" ]; then "$$kubectl" label --overwrite "$$node" "$$part" >/dev/null; fi
	done

.PHONY: cluster-down
cluster-down: ## stop the embedded Kubernetes and leave nothing but the cache and packages
	$(CLUSTER) down

.PHONY: images
images: ## build all container images that changed
	$(SAY)
	say "Images"
	$(IMAGES) $(FOR_PLATFORM)

.PHONY: push
push: ## build the images and push them to REGISTRY/laptime/
	if [ -z "$(REGISTRY)" ]; then echo "say where to: make push REGISTRY=registry.example" >&2; exit 1; fi
	$(IMAGES) push $(FOR_PLATFORM) $(if $(TAG),--tag "$(TAG)") "$(REGISTRY)/laptime"

# Cluster and images, where they have to be: the embedded cluster gets the images by import, a
# cluster of one's own pulls them.
.PHONY: ready-cluster
ifeq ($(OWN_KUBECONFIG),)
ready-cluster: cluster
	$(SAY)
	say "Images"
	$(IMAGES) $(CHART_IMAGES)
	names="$(LOADED_IMAGES)" # empty: all that were ever built
	if [ -n "$$names" ] && [ -f "$(GRAFANA_ARCHIVE)" ]; then names="$$names grafana"; fi
	$(CLUSTER) load $$names
else ifneq ($(REGISTRY),)
ready-cluster: push
else
ready-cluster:
	echo "Using the cluster of $(OWN_KUBECONFIG)"
endif

# The embedded cluster cannot pull the official Prometheus and is there for benchmarks alone; a
# registry of one's own has what was pushed to it. Without a registry of its own it is pulled from
# images.registry, as all that is built here.
BUILT_PROMETHEUS := --set images.prometheus.registry=,images.prometheus.repository=laptime/prometheus,images.prometheus.tag=
# The DNS of the embedded cluster is a process of its control plane.
CLUSTER_DNS := --set 'networkPolicy.runs.dns[0].ipBlock.cidr=10.203.0.0/16,networkPolicy.runs.dns[1].ipBlock.cidr=fd6c:10:203::/48'
ifeq ($(OWN_KUBECONFIG),)
# Nobody else's is what stands there: tests apply CRDs by kubectl, and Helm would leave those alone.
INSTALL_VALUES := $(BUILT_PROMETHEUS) --force-conflicts --take-ownership --set 'watching.namespaces={*}' \
	$(CLUSTER_DNS)
else ifneq ($(REGISTRY),)
# Without one the version is meant, whatever tag an earlier installation had.
INSTALL_VALUES := $(BUILT_PROMETHEUS) --set images.registry=$(REGISTRY) --set-string images.tag=$(TAG)
endif
ifneq ($(OWN_KUBECONFIG),)
# Those that an administrator has set stay: Helm forgets them where it is told any others.
INSTALL_VALUES += --reset-then-reuse-values
endif

.PHONY: install
install: venv ready-cluster ## install or upgrade the chart in the cluster
	$(SAY) $(USE_CLUSTER)
	say "Installing the chart"
	$(CLUSTER) tools
	helm="$$($(CLUSTER) path helm)"
	# The embedded cluster gets a new image under an old tag: the digest makes it a new pod.
	mkdir -p "$(CACHE)/logs"
	digests=()
	for image in operator agent prometheus; do
		digest="$$(cat $(CACHE)/images/$$image.digest 2>/dev/null || true)"
		digests+=(--set-string "$$image.podAnnotations.laptime\.dev/image-digest=$$digest")
	done
	grafana=()
	if [ -z "$(OWN_KUBECONFIG)" ] && [ -f "$(GRAFANA_ARCHIVE)" ]; then
		grafana=(--set grafana.enabled=true,grafana.anonymous=true)
	fi
	# A helm that was killed leaves its release locked for ever. Nobody else uses the embedded cluster.
	status="$$("$$helm" status laptime --namespace $(NAMESPACE) 2>/dev/null | sed -n 's/^STATUS: //p' || true)"
	if [ -z "$(OWN_KUBECONFIG)" ]; then
		case "$$status" in
			pending-install) "$$helm" uninstall laptime --namespace $(NAMESPACE) --wait >/dev/null ;;
			pending-*) "$$helm" rollback laptime --namespace $(NAMESPACE) >/dev/null ;;
		esac
	fi
	upgrade=(upgrade --install laptime charts/laptime --namespace $(NAMESPACE) --create-namespace \
		$(INSTALL_VALUES) $(PLACED) "$${grafana[@]}" $(HELM_FLAGS) "$${digests[@]}")
	if [ -n "$(OWN_KUBECONFIG)" ] && [ -z "$(REGISTRY)" ]; then
		# Helm alone knows what an earlier installation has set of them, which stays. Where it fails it says why below.
		pulled="$$("$$helm" "$${upgrade[@]}" --dry-run=server 2>/dev/null | sed -n 's/^[- ]*image: *"\{0,1\}\([^" ]\{1,\}\)"\{0,1\}$$/  \1/p' | sort -u || true)"
		if [ -n "$$pulled" ]; then
			echo "The cluster must be able to pull these, and the others of Laptime from where its operator is:"
			echo "$$pulled"
			echo "With a registry of your own: make REGISTRY=registry.example KUBECONFIG=..."
		fi
	fi
	if ! "$$helm" "$${upgrade[@]}" \
		--wait --timeout 180s >"$(CACHE)/logs/helm-$${LAPTIME_CLUSTER_NAME:-own}.log" 2>&1; then
		cat "$(CACHE)/logs/helm-$${LAPTIME_CLUSTER_NAME:-own}.log" >&2
		kubectl="$$($(CLUSTER) path kubectl)"
		"$$kubectl" -n $(NAMESPACE) get pods,events >&2 || true
		"$$kubectl" -n $(NAMESPACE) logs deployment/laptime-operator --tail=40 >&2 || true
		echo "the chart could not be installed" >&2
		exit 1
	fi

##### Develop

.PHONY: venv
venv: $(VENV_STAMP) ## the Python environment .venv, from its lock file

$(VENV_STAMP): export UV_PYTHON_DOWNLOADS := never
$(VENV_STAMP):
	$(SAY)
	say "Python environment $(VENV)"
	uv="$$(command -v uv || true)"
	if ! "$${uv:-false}" --version >/dev/null 2>&1; then
		uv="$(CACHE)/uv-$(UV_VERSION)/bin/uv"
		if [ ! -x "$$uv" ]; then
			say "Installing uv into the cache"
			if ! python3 -m pip --version >/dev/null 2>&1; then
				[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null ||
					{ echo "uv or pip is missing: install one of them (Debian: python3-pip)" >&2; exit 1; }
				apt-get install -y -qq python3-pip >/dev/null || { apt-get update -qq && apt-get install -y -qq python3-pip >/dev/null; }
			fi
			python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore \
				--target "$(CACHE)/uv-$(UV_VERSION)" "uv==$(UV_VERSION)"
		fi
	fi
	"$$uv" venv --quiet --allow-existing --python python3 $(VENV)
	"$$uv" pip install --quiet --compile-bytecode --python $(PYTHON) --require-hashes -r operator/requirements-dev.lock
	"$$uv" pip install --quiet --compile-bytecode --python $(PYTHON) --require-hashes -r agent/requirements.lock
	"$$uv" pip install --quiet --compile-bytecode --python $(PYTHON) --require-hashes -r dashboards/requirements.lock
	"$$uv" pip install --quiet --python $(PYTHON) --no-deps --editable operator --editable agent --editable dashboards
	rm -f $(VENV)/.made-from-*
	touch $@

# Which parts there are, and what each needs, stands in proof/laptime_proof/catalogue.py.
PROVE := python3 proof/prove.py
.PHONY: test
test: ## everything: lint, verify, unit, e2e (ONLY=unit,e2e-runs: these; FAILED=1, CHANGED=1: what failed last, or may since)
	$(PROVE) test $(if $(FAILED),--failed) $(if $(CHANGED),--changed) $(ONLY)

.PHONY: prove
prove: ## what takes hours: benches and examples, going on where it stopped (ONLY=bench-truth: this)
	$(PROVE) long $(if $(FAILED),--failed) $(ONLY)

.PHONY: standing
standing: ## when each check last passed, on which commit, how often out of how many
	$(PROVE) standing

.PHONY: unit unit-operator unit-operator-timed unit-python unit-benches unit-go unit-k6 unit-k6-timed unit-rust
unit: unit-operator unit-operator-timed unit-python unit-benches unit-go unit-k6 unit-k6-timed unit-rust ## tests that need no cluster

unit-operator: venv
	# Three processes on two cores: hundreds of these thousands mostly wait for what an operator does
	# beside them. Some take half a minute, and whoever is through takes tests from the others.
	cd operator && $(CURDIR)/$(PYTHON) -m pytest -m 'not timed' --numprocesses $$(( (3 * $$(nproc) + 1) / 2 )) --dist worksteal --durations 30 tests

unit-operator-timed: venv # asks for times: not beside tests that take all of the CPUs
	cd operator && $(CURDIR)/$(PYTHON) -m pytest -m timed --numprocesses 3 --dist worksteal tests

# Two parts, each of which waits for half of its time.
unit-python: FOLDERS := agent cluster images dashboards
unit-benches: FOLDERS := bench proof
unit-python unit-benches: venv
	$(SAY)
	for folder in $(FOLDERS); do
		say "$$folder"
		(cd $$folder && $(CURDIR)/$(PYTHON) -m pytest tests)
	done

# Go takes what once passed on the same files for passed, and these are of servers, clocks and
# goroutines: run again, it may fail.
ANEW := -count=1

.PHONY: build-unit-go build-unit-rust
build-unit-go:
	for module in $(UNIT_GO); do (cd $$module && go test -run '^$$' ./...); done

unit-go:
	$(SAY)
	for module in $(UNIT_GO); do
		say "$$module"
		(cd $$module && go test $(ANEW) ./...)
	done

unit-k6:
	cd images/k6 && go test $(ANEW) -skip '^TestTimed' ./...

unit-k6-timed: # compares response times and rates with the truth: nothing else may run on the machine
	cd images/k6 && go test $(ANEW) -run '^TestTimed' ./internal/loop ./bandwidth

build-unit-rust:
	cd $(RUST_SERVERS) && cargo test --quiet --locked --no-run

unit-rust:
	cd $(RUST_SERVERS) && cargo test --quiet --locked

##### End-to-end tests, on clusters of their own: a person's is neither used nor stopped

# Three parts of the tests run beside each other, each on a cluster, since one run at a time is
# measured in a cluster (e2e/shards.py says which test is where).
E2E_IMAGES := $(CHART_IMAGES) delay faulty load-script reference server-axum-bb8 server-django-psycopg server-go-nethttp server-starlette-asyncpg
PYTEST_E2E = cd e2e && PYTHONPATH=. $(CURDIR)/$(PYTHON) -m pytest -p diagnostics -p shards $(if $(OWN_KUBECONFIG),--shared-cluster)

.PHONY: e2e
ifeq ($(OWN_KUBECONFIG),)
e2e: ## tests on clusters: schema, chart, whole runs, broken servers (E2E="runs -k kill": these)
	$(if $(E2E),$(AGAIN) e2e-some,$(PROVE) test e2e)
else
e2e: install ## tests on clusters: schema, chart, whole runs, broken servers (E2E="runs -k kill": these)
	$(USE_CLUSTER)
	$(PYTEST_E2E) $(E2E)
endif

.PHONY: e2e-some
e2e-some: venv # on the first cluster, which stays up if it was up (make e2e-up-a, e2e-down-a)
	started=no
	down() {
		code=$$?
		trap - EXIT INT TERM
		if [ "$$started" = yes ]; then $(AGAIN) -C "$(CURDIR)" e2e-down-a || code=1; fi
		exit $$code
	}
	trap down EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	export LAPTIME_CLUSTER_NAME=laptime-e2e-a
	$(CLUSTER) status >/dev/null 2>&1 || started=yes
	$(IMAGES) $(E2E_IMAGES)
	$(AGAIN) install LOADED_IMAGES="$(E2E_IMAGES)"
	$(USE_CLUSTER)
	$(PYTEST_E2E) $(E2E)

# What is left of a run that was killed goes first: these clusters are never a person's.
.PHONY: e2e-up-a e2e-up-b e2e-up-c
e2e-up-a e2e-up-b e2e-up-c: e2e-up-%: venv
	export LAPTIME_CLUSTER_NAME=laptime-e2e-$*
	$(CLUSTER) down
	$(IMAGES) $(E2E_IMAGES)
	$(AGAIN) install LOADED_IMAGES="$(E2E_IMAGES)"

.PHONY: e2e-down-a e2e-down-b e2e-down-c
e2e-down-a e2e-down-b e2e-down-c: e2e-down-%:
	LAPTIME_CLUSTER_NAME=laptime-e2e-$* $(CLUSTER) down

.PHONY: e2e-runs-a e2e-runs-b e2e-runs-c
e2e-runs-a e2e-runs-b e2e-runs-c: e2e-runs-%: venv
	export LAPTIME_CLUSTER_NAME=laptime-e2e-$*
	$(USE_CLUSTER)
	$(PYTEST_E2E) --shard $*

.PHONY: e2e-api
e2e-api: venv # what asks the API server and Helm alone, beside the runs on the first cluster
	export LAPTIME_CLUSTER_NAME=laptime-e2e-a
	$(USE_CLUSTER)
	$(PYTEST_E2E) --shard api --numprocesses 2

.PHONY: e2e-figures
e2e-figures: venv # alone on the machine, on the first cluster
	export LAPTIME_CLUSTER_NAME=laptime-e2e-a
	$(USE_CLUSTER)
	$(PYTEST_E2E) --shard figures

.PHONY: e2e-servers
e2e-servers: venv # the images of servers and tiers, without a cluster; they mostly wait
	$(IMAGES) $(TEST_IMAGES)
	cd images && $(CURDIR)/$(PYTHON) -m pytest --numprocesses 3 servers/tests

.PHONY: e2e-cluster
e2e-cluster: venv # the embedded Kubernetes itself
	export LAPTIME_TEST_CLUSTER=laptime-test LAPTIME_CLUSTER_TESTS=1
	$(DOWN_AFTER_TESTS)
	(cd cluster && $(CURDIR)/$(PYTHON) -m pytest -m starts_a_cluster tests)

.PHONY: nodes
nodes: venv ## the embedded Kubernetes with three nodes: apart, joined, frozen, cut off, stopped, drained (ONLY=ipv6: these tests)
	export LAPTIME_TEST_CLUSTER=laptime-nodes LAPTIME_NODES_TESTS=1
	$(IMAGES) agent
	$(DOWN_AFTER_TESTS)
	(cd cluster && $(CURDIR)/$(PYTHON) -m pytest tests/test_nodes.py $(if $(ONLY),-k "$(ONLY)"))

.PHONY: placements
placements: venv ## runs in placements on three nodes, by the commands of docs/real-cluster.md
	export LAPTIME_CLUSTER_NAME=laptime-placements
	$(own_cluster)
	$(AGAIN) install NODES=3 LOADED_IMAGES="$(CHART_IMAGES)"
	$(USE_CLUSTER)
	(export LAPTIME_PLACEMENTS_TESTS=1; $(PYTEST_E2E) --capture=no --shard placements)

.PHONY: lost-nodes
lost-nodes: venv ## nodes frozen, drained, cut off and killed in mid-trial, five times each, on four nodes
	export LAPTIME_CLUSTER_NAME=laptime-lost-nodes
	$(own_cluster)
	$(AGAIN) install NODES=4 LOADED_IMAGES="$(CHART_IMAGES)"
	$(USE_CLUSTER)
	(export LAPTIME_LOST_NODES_TESTS=1; $(PYTEST_E2E) --capture=no --shard lost-nodes)

.PHONY: own-cpus
own-cpus: venv ## that servers had CPUs for themselves, on a node whose kubelet gives them out
	export LAPTIME_CLUSTER_NAME=laptime-own-cpus LAPTIME_CLUSTER_SHARED_CPUS=1
	$(own_cluster)
	$(AGAIN) install LOADED_IMAGES="$(CHART_IMAGES)"
	$(USE_CLUSTER)
	(export LAPTIME_OWN_CPUS_TESTS=1; $(PYTEST_E2E) --capture=no --shard own-cpus)

.PHONY: ipv6
ipv6: venv ## whole runs on three nodes that have addresses of IPv6 alone: tiers, policies, scripts, several generators
	export LAPTIME_CLUSTER_NAME=laptime-ipv6 LAPTIME_CLUSTER_FAMILY=ipv6
	$(own_cluster)
	$(IMAGES) $(E2E_IMAGES)
	$(AGAIN) install NODES=3 LOADED_IMAGES="$(E2E_IMAGES)"
	$(USE_CLUSTER)
	($(PYTEST_E2E) $(addprefix runs/test_,complete_run.py generators.py http2.py network_policies.py scripts.py services.py side_services.py))

# What tests need, built beforehand, so that no compiler runs beside them.
.PHONY: build-node build-helm build-chart-images build-test-images
build-node:
	$(CLUSTER) build

build-helm:
	$(CLUSTER) tools

build-chart-images:
	$(IMAGES) $(CHART_IMAGES)

build-test-images:
	$(IMAGES) $(TEST_IMAGES)

.PHONY: report-check
report-check: venv ## open a report (REPORT=file, else one made up) in Chromium: accessible, complete, no scrolling
	out="$(CURDIR)/out/report"
	mkdir -p "$$out"
	report="$(if $(REPORT),$(abspath $(REPORT)))"
	if [ -z "$$report" ]; then
		report="$$out/sample.html"
		(cd operator && ../$(PYTHON) -c 'from tests.report.sample import recorded; from laptime.report.html import to_html; print(to_html(*recorded()))') >"$$report"
	fi
	cd e2e/report
	npm ci --no-audit --no-fund --silent
	node check.mjs "$$report" "$$out"

.PHONY: lint lint-python lint-go lint-rust lint-chart lint-dashboards
lint: lint-python lint-go lint-rust lint-chart lint-dashboards ## format, types, layers, clippy, vet, chart, dashboards

lint-python: venv
	$(SAY)
	say "Python: format and rules"
	$(VENV)/bin/ruff format --quiet --check . || { echo "run: make format" >&2; exit 1; }
	$(VENV)/bin/ruff check --quiet .
	say "Python: types and layers"
	(cd operator && $(MYPY) src tests)
	layers="$$(cd operator && ../$(VENV)/bin/lint-imports)" || { echo "$$layers"; exit 1; }
	(cd cluster && $(MYPY) cluster.py laptime_cluster tests)
	(cd proof && $(MYPY) prove.py laptime_proof tests)
	(cd agent && $(CURDIR)/$(VENV)/bin/mypy --no-error-summary --cache-dir "$(CACHE)/mypy/agent" src tests)
	(cd dashboards && $(CURDIR)/$(VENV)/bin/mypy --no-error-summary --cache-dir "$(CACHE)/mypy/dashboards" src tests)
	(cd images && $(MYPY) build.py imagebuild)
	(cd e2e && $(MYPY) .)
	for bench in bench/*/run.py; do
		(cd "$$(dirname "$$bench")" && MYPYPATH=..:../../cluster:../../proof:../../agent/src:../../agent/tests $(MYPY) run.py)
	done
	(cd bench/tests && MYPYPATH=..:../examples:../servers:../comparing:../scale:../../cluster:../../proof $(MYPY) .)

lint-go:
	$(SAY)
	for module in $(GO_MODULES); do
		say "$$module"
		(
			cd $$module
			# Beside the go that is used. An assignment of its own: what fails in one ends the recipe.
			unformatted="$$("$$(go env GOROOT)/bin/gofmt" -l .)"
			[ -z "$$unformatted" ] || { echo "$$unformatted"; exit 1; }
			go vet ./...
		)
	done

lint-rust:
	for workspace in $(RUST_WORKSPACES); do
		(cd $$workspace && cargo fmt --all --check && cargo clippy --quiet --locked --workspace --all-targets -- -D warnings)
	done

lint-chart:
	$(CLUSTER) tools
	"$$($(CLUSTER) path helm)" lint --quiet --strict charts/laptime

lint-dashboards:
	cd dashboards/linter && go run . ../lint.yaml "$(CURDIR)"/charts/laptime/files/dashboards/*.json

.PHONY: test-alerts
test-alerts: ## the chart's alerts, by promtool, which the first time is compiled for minutes
	(cd charts/alerts && CGO_ENABLED=0 GOFLAGS=-tags=remove_all_sd,enable_kubernetes_sd go tool promtool test rules test.yaml)

.PHONY: format
format: venv ## format all code
	$(VENV)/bin/ruff format --quiet .
	$(VENV)/bin/ruff check --quiet --fix .
	for module in $(GO_MODULES); do gofmt -w $$module; done
	for workspace in $(RUST_WORKSPACES); do cargo fmt --all --manifest-path $$workspace/Cargo.toml; done

.PHONY: generate
generate: venv ## write the files that are made from others: CRD, schemas, reference, dashboards, golden manifests
	for folder in $(CRDS) charts/laptime/files; do
		$(PYTHON) -c 'import sys; from pathlib import Path; from laptime.cli.generate import write_crds; write_crds(Path(sys.argv[1]))' $$folder
	done
	$(PYTHON) -c 'from pathlib import Path; from laptime.cli.generate import write_results_schema; write_results_schema(Path("$(RESULTS_SCHEMA)"))'
	$(PYTHON) -c 'from pathlib import Path; from laptime.cli.generate import write_reference; write_reference(Path("$(REFERENCE)"), Path("charts/laptime"))'
	$(PYTHON) -W ignore::DeprecationWarning -m laptime_dashboards.write charts/laptime/files/dashboards
	(cd operator && LAPTIME_GOLDEN=write ../$(PYTHON) -m pytest -q tests/manifests/test_golden.py)

GENERATED := $(CRDS) $(RESULTS_SCHEMA) $(REFERENCE) charts/laptime/files operator/tests/manifests/golden \
	images/k6/internal/spec/testdata/operator.json

.PHONY: verify
verify: ## regenerate and compare with what is committed
	$(AGAIN) generate
	# What is new is in no difference of git's.
	unknown="$$(git ls-files --others -- $(GENERATED))"
	git diff --exit-code --stat -- $(GENERATED) && [ -z "$$unknown" ] || {
		[ -z "$$unknown" ] || printf 'not in git: %s\n' $$unknown
		echo "generated files are not up to date: commit what make generate wrote" >&2
		exit 1
	}

##### The published benchmarks

# What ran before on a cluster of one's own may be somebody else's.
EXAMPLES := PYTHONPATH=bench $(PYTHON) bench/examples/run.py $(if $(OWN_KUBECONFIG),,--again)
# What the examples need beside the chart's images; a cluster of one's own pulls what was pushed.
define load_example_images
$(SAY)
if [ -z "$(OWN_KUBECONFIG)" ]; then
	say "Images of the examples"
	images="$$($(EXAMPLES) --images $(ONLY))"
	$(IMAGES) $$images
	$(CLUSTER) load
fi
endef

.PHONY: examples-quick
examples-quick: install ## the five published benchmarks, small: each server beside its published factor
	$(USE_CLUSTER)
	$(load_example_images)
	$(EXAMPLES) --quick $(RUN_FLAGS) $(ONLY)

.PHONY: examples
examples: install ## the five published benchmarks as published, into docs/results: two to four hours
	$(USE_CLUSTER)
	$(load_example_images)
	$(EXAMPLES) --write docs/results $(RUN_FLAGS) $(ONLY)

.PHONY: bench-overhead
bench-overhead: install ## what Laptime itself takes: apply to first request, between trials, to figures
	$(USE_CLUSTER)
	PYTHONPATH=bench:proof $(PYTHON) bench/overhead/run.py

.PHONY: bench-cause
bench-cause: install ## whether causes are named and proven rightly: set-ups drawn by a seed, going on where it stopped (SETUPS=10)
	$(USE_CLUSTER)
	$(IMAGES) $$(PYTHONPATH=bench:proof $(PYTHON) bench/cause/run.py --images)
	[ -n "$(OWN_KUBECONFIG)" ] || $(CLUSTER) load
	PYTHONPATH=bench:proof $(PYTHON) bench/cause/run.py $(if $(SETUPS),--setups $(SETUPS))

.PHONY: bench-cause-fixed
bench-cause-fixed: install ## whether what limits a server is named rightly: each cause, provoked clearly on purpose
	$(USE_CLUSTER)
	$(IMAGES) $$(PYTHONPATH=bench $(PYTHON) bench/cause/fixed.py --images)
	[ -n "$(OWN_KUBECONFIG)" ] || $(CLUSTER) load
	PYTHONPATH=bench $(PYTHON) bench/cause/fixed.py

.PHONY: bench-alike
bench-alike: install ## how often like servers are told apart: 100 runs, going on where it stopped (RUNS=10, KIND=six)
	$(USE_CLUSTER)
	$(IMAGES) reference
	[ -n "$(OWN_KUBECONFIG)" ] || $(CLUSTER) load
	PYTHONPATH=bench:proof $(PYTHON) bench/alike/run.py $(if $(RUNS),--runs $(RUNS)) $(if $(KIND),--kind $(KIND))

.PHONY: bench-detectable
bench-detectable: install ## how often a run finds the difference that it calls the smallest detectable, going on where it stopped (RUNS=10)
	$(USE_CLUSTER)
	$(IMAGES) reference
	[ -n "$(OWN_KUBECONFIG)" ] || $(CLUSTER) load
	PYTHONPATH=bench:proof $(PYTHON) bench/detectable/run.py $(if $(RUNS),--runs $(RUNS))

.PHONY: bench-duet
bench-duet: install ## what measuring two servers at the same time gives, beside a noisy neighbour and without (ROUNDS=1)
	if [ -n "$(OWN_KUBECONFIG)" ]; then
		echo "not judged: the noisy neighbour is on this machine, where a cluster of one's own is not"
		exit 75
	fi
	$(USE_CLUSTER)
	$(IMAGES) server-go-nethttp server-starlette
	$(CLUSTER) load
	PYTHONPATH=bench:proof $(PYTHON) bench/duet/run.py $(if $(ROUNDS),--rounds $(ROUNDS))

.PHONY: bench-deciding
bench-deciding: install ## how long until all orders of the published benchmarks are known, by the rule and by the first one (RUNS=1)
	$(USE_CLUSTER)
	$(load_example_images)
	PYTHONPATH=bench:proof $(PYTHON) bench/deciding/run.py $(if $(RUNS),--runs $(RUNS))

.PHONY: bench-nodes
bench-nodes: venv ## like servers on a fast and a slow node, rotated and by luck, on four nodes (RUNS=5)
	export LAPTIME_CLUSTER_NAME=laptime-bench-nodes
	$(own_cluster)
	$(CLUSTER) up --nodes 4
	# The second and the fourth have CPUs of their own where the machine has two.
	kubectl="$$($(CLUSTER) path kubectl) --kubeconfig $$($(CLUSTER) kubeconfig)"
	$$kubectl label node laptime bench=rest >/dev/null
	$$kubectl label node laptime-2 laptime-4 bench=servers >/dev/null
	$$kubectl taint node laptime-2 laptime-4 bench=servers:NoSchedule >/dev/null
	$(AGAIN) install LOADED_IMAGES="$(CHART_IMAGES)" HELM_FLAGS="--values bench/nodes/values.yaml"
	$(CLUSTER) slow laptime-4 50
	$(USE_CLUSTER)
	PYTHONPATH=bench:proof $(PYTHON) bench/nodes/run.py $(if $(RUNS),--runs $(RUNS))

.PHONY: bench-lanes
bench-lanes: venv ## a factor measured beside a run in another lane, and alone, on four nodes (PAIRS=2)
	if [ "$$(nproc)" != 2 ]; then
		echo "not judged: nodes share CPUs as this needs it on a machine of two alone, and this one has $$(nproc)"
		exit 75
	fi
	export LAPTIME_CLUSTER_NAME=laptime-bench-lanes LAPTIME_CLUSTER_CONTROL_CPUS=0
	$(own_cluster)
	$(CLUSTER) up --nodes 4
	# The fourth node has the second CPU, for the run that counts. The second has that one too: what a
	# lane is not. All else is on the first CPU: the other lane, the control plane, Laptime's own pods.
	kubectl="$$($(CLUSTER) path kubectl) --kubeconfig $$($(CLUSTER) kubeconfig)"
	$$kubectl label node laptime-2 bench=near >/dev/null
	$$kubectl label node laptime-3 bench=west >/dev/null
	$$kubectl label node laptime-4 bench=east >/dev/null
	$$kubectl taint node laptime-2 laptime-3 laptime-4 bench=lane:NoSchedule >/dev/null
	$(AGAIN) install LOADED_IMAGES="$(CHART_IMAGES)" HELM_FLAGS="--values bench/lanes/values.yaml"
	$(USE_CLUSTER)
	PYTHONPATH=bench:proof $(PYTHON) bench/lanes/run.py $(if $(PAIRS),--pairs $(PAIRS))

BENCH_SERVERS := PYTHONPATH=bench:proof $(PYTHON) bench/servers/run.py --only "$(ONLY)" $(RUN_FLAGS)
.PHONY: bench-servers
bench-servers: install ## each server beside a minimal one by the book (ONLY=axum-sqlx,flask: these)
	$(USE_CLUSTER)
	images="$$($(BENCH_SERVERS) --images)"
	$(IMAGES) $$images
	[ -n "$(OWN_KUBECONFIG)" ] || $(CLUSTER) load
	$(BENCH_SERVERS)

.PHONY: bench-scale
bench-scale: venv ## the operator beside 10,000 finished and 1,000 waiting runs, on a cluster of its own
	export LAPTIME_CLUSTER_NAME=laptime-scale
	export LAPTIME_CLUSTER_AUDIT=system:serviceaccount:$(NAMESPACE):laptime-operator
	$(DOWN_AT_END)
	$(CLUSTER) down
	$(AGAIN) install LOADED_IMAGES="$(CHART_IMAGES)"
	$(USE_CLUSTER)
	PYTHONPATH=bench:proof $(PYTHON) bench/scale/run.py $(BENCH)

# Its processes are stopped and killed: the cluster is its own. The proxy is beside the API server.
.PHONY: chaos
chaos: venv ## faults in real runs, on a cluster of its own, going on where it stopped (FAULTS=12, ONLY=kinds, PART=1/2)
	export LAPTIME_CLUSTER_NAME=laptime-chaos$(subst 1,,$(firstword $(subst /, ,$(PART))))
	$(DOWN_AT_END)
	$(CLUSTER) down
	export LAPTIME_CLUSTER_DISK=8G
	$(AGAIN) install LOADED_IMAGES="$(CHART_IMAGES)"
	PYTHONPATH=bench:cluster:proof nsenter --net=/run/$$LAPTIME_CLUSTER_NAME/namespaces/control/network \
		$(PYTHON) bench/chaos/run.py $(if $(FAULTS),--faults $(FAULTS)) $(if $(ONLY),--only "$(ONLY)") \
		$(if $(PART),--part $(PART))

.PHONY: bench-generator
bench-generator: venv ## requests per CPU-second of the load generator, beside k6, wrk and ab
	$(PYTHON) bench/generator/run.py

# The folder of k6's examples; left out, that of the module which k6 is built from, which is there once it was built.
K6_EXAMPLES ?=

.PHONY: k6-examples
k6-examples: ## k6's own examples, each beside what k6 itself says of the same process: a table
	export K6_EXAMPLES="$(abspath $(K6_EXAMPLES))" LAPTIME_ALL_EXAMPLES=1 GOPROXY=off
	export LAPTIME_EXAMPLES_TABLE="$$(mktemp)"
	trap 'cat "$$LAPTIME_EXAMPLES_TABLE"; rm -f "$$LAPTIME_EXAMPLES_TABLE"' EXIT
	cd images/k6
	echo "k6 $$(go list -m -f '{{.Version}}' go.k6.io/k6/v2)"
	go test $(ANEW) -run '^TestK6sOwnExamplesSayWhatK6Says$$' .

.PHONY: bench-precision
bench-precision: venv ## whether intervals hold what they say: simulated runs, and real trials resampled
	$(PYTHON) bench/precision/run.py $(BENCH)

.PHONY: bench-statistics
bench-statistics: venv ## what rules for comparing servers claim of like ones: all candidates, simulated
	PYTHONPATH=bench $(PYTHON) bench/comparing/run.py $(BENCH)

.PHONY: bench-search
bench-search: venv ## what searches find of servers whose capacity is known, as it was and now: simulated
	$(PYTHON) bench/search/run.py $(BENCH)

.PHONY: bench-looks
bench-looks: venv ## how often runs err that look after each repetition, and what looking saves: simulated
	PYTHONPATH=bench $(PYTHON) bench/comparing/looks.py --only ours $(BENCH)

.PHONY: bench-length
bench-length: venv ## how often advice on the length of trials saves time, and how much: simulated
	PYTHONPATH=bench $(PYTHON) bench/comparing/length.py $(BENCH)

.PHONY: bench-history
bench-history: venv ## what earlier runs' noise would do to claims: all candidates, simulated
	$(PYTHON) bench/comparing/history.py $(BENCH)

.PHONY: bench-between
bench-between: venv ## how often like servers in two runs are told apart, by what was measured, and simulated
	PYTHONPATH=bench:proof $(PYTHON) bench/comparing/between_runs.py $(BENCH)

.PHONY: bench-outside
bench-outside: venv ## what others' work on a node explains of a trial's noise, before it and during it
	$(PYTHON) bench/comparing/outside.py

.PHONY: bench-orders
bench-orders: venv ## what a machine that drifts does to comparisons, by the order of the trials: all candidates, simulated
	$(PYTHON) bench/comparing/orders.py $(BENCH)

.PHONY: bench-truth
bench-truth: venv ## what the load generator measures, beside the truth of a server that is known (RUNS=1)
	PYTHONPATH=bench:proof $(PYTHON) bench/truth/run.py $(if $(RUNS),--runs $(RUNS))

.PHONY: bench-agent
bench-agent: venv ## what the node agent takes of one core, with 20 pods at one scrape a second
	$(PYTHON) bench/agent/run.py

.PHONY: bench-speed
bench-speed: venv ## how much of a CPU's changing speed the agent's fixed piece of work tells
	PYTHONPATH=bench:proof $(PYTHON) bench/speed/run.py

.PHONY: takeovers
takeovers: install ## the operator at work killed, frozen and cut off, ten times each, in mid-trial
	$(USE_CLUSTER)
	export LAPTIME_TAKEOVERS=10
	$(PYTEST_E2E) --capture=no runs/test_two_operators.py

.PHONY: frozen-kubelet
frozen-kubelet: install ## a kubelet that stands still for a minute, at each stage of a run
	$(USE_CLUSTER)
	$(PYTEST_E2E) --capture=no runs/test_frozen_kubelet.py

.PHONY: bad-scripts
bad-scripts: install ## every way in which a k6 script can be wrong, on a cluster: its end, its words, how soon
	$(USE_CLUSTER)
	$(PYTEST_E2E) --capture=no runs/test_bad_scripts.py

.PHONY: wrong-scenarios
wrong-scenarios: install ## what is wrong with a scenario and only shows at run time: each one's end, its words, how soon
	$(USE_CLUSTER)
	if [ -z "$(OWN_KUBECONFIG)" ]; then
		$(IMAGES) faulty server-go-nethttp
		$(CLUSTER) load faulty server-go-nethttp
	fi
	$(PYTEST_E2E) --capture=no runs/test_wrong_scenarios.py

# They change the release and the namespace of the chart.
.PHONY: namespaces
namespaces: venv ## whole runs under levels, quotas, limits, policies and users of a cluster, on one of its own
	export LAPTIME_CLUSTER_NAME=laptime-namespaces
	$(CLUSTER) down
	$(DOWN_AT_END)
	images="$(CHART_IMAGES) delay load-script server-go-nethttp"
	$(IMAGES) $$images
	$(AGAIN) install LOADED_IMAGES="$$images"
	$(USE_CLUSTER)
	($(PYTEST_E2E) --capture=no runs/test_kinds_of_namespaces.py)

.PHONY: seconds
seconds: install ## a hundred trials: whether Prometheus has each second of each exactly
	$(USE_CLUSTER)
	$(PYTEST_E2E) --capture=no runs/test_seconds.py -k hundred

# The way of a cluster of one's own: images are pushed to a registry, Debian's, and pulled from there.
# It is in the node's network, since that has no way out; to all there it is localhost, which may
# speak plain HTTP. Images are built outside of it.
.PHONY: own-cluster
own-cluster: venv images ## the demo on a cluster that pulls from a registry (ENGINE=podman: built and pushed by it)
	$(SAY)
	export LAPTIME_CLUSTER_NAME=laptime-own
	$(CLUSTER) packages docker-registry
	$(CLUSTER) down
	folder="$$(mktemp -d)"
	down() { code=$$?; trap - EXIT INT TERM; kill $$registry 2>/dev/null || true; $(CLUSTER) down || code=1; rm -rf "$$folder"; exit $$code; }
	registry=; trap down EXIT; trap 'exit 130' INT; trap 'exit 143' TERM
	$(CLUSTER) up
	inside=(nsenter --net=/run/$$LAPTIME_CLUSTER_NAME/namespaces/laptime/network)
	printf '%s\n' 'version: 0.1' "storage: {filesystem: {rootdirectory: $$folder}}" 'http: {addr: "127.0.0.1:5000"}' >"$$folder/config.yml"
	"$${inside[@]}" docker-registry serve "$$folder/config.yml" >"$$folder/log" 2>&1 & registry=$$!
	say "The demo, from a registry"
	"$${inside[@]}" $(AGAIN) demo KUBECONFIG="$$($(CLUSTER) kubeconfig)" REGISTRY=localhost:5000 $(if $(ENGINE),ENGINE=$(ENGINE)) \
		HELM_FLAGS="$(CLUSTER_DNS) $(HELM_FLAGS)"
	say "What was pulled"
	grep -o 'GET /v2/laptime/[^ ]*manifests/[^ ]*' "$$folder/log" | sort | uniq -c

# All that the chart uses, and a server of each language. Where this machine has no such CPU, QEMU is one.
ARM64_IMAGES := $(CHART_IMAGES) server-go-nethttp
.PHONY: arm64
arm64: venv ## the images for arm64, run (emulated where this is another CPU), and pushed to a registry with those for amd64
	$(CLUSTER) packages docker-registry
	$(IMAGES) --platform linux/arm64 $(ARM64_IMAGES)
	cd images && LAPTIME_ARM64_IMAGES="$(ARM64_IMAGES)" $(CURDIR)/$(PYTHON) -m pytest --capture=no servers/tests/test_arm64.py

.PHONY: fuzz
fuzz: install ## 2,000 specs made from the CRD's schema: past the API server, and simulated to their ends; other examples in all tests that draw some
	$(USE_CLUSTER)
	(cd operator && LAPTIME_EXAMPLES=drawn ../$(PYTHON) -m pytest -m hypothesis --numprocesses auto --dist worksteal tests)
	cd operator && ../$(PYTHON) -m tests.fuzz.run $(FUZZ)

.PHONY: cache
cache: ## how large the cache is, and what of it
	du -sh "$(CACHE)/" 2>/dev/null || echo "there is no cache in $(CACHE)"
	du -sh "$(CACHE)"/* 2>/dev/null | sort -hr || true

.PHONY: clean-cache
clean-cache: ## remove all that was built and downloaded; the next make builds it again
	# Go writes its modules read-only; what an engine keeps of the images lies elsewhere, and it alone
	# knows where.
	if [ -d "$(CACHE)" ]; then
		# The usual one may be of a version that made no mark.
		if [ ! -e "$(CACHE_MARK)" ] && [ "$(CACHE)" != "$(HOME)/.cache/laptime" ]; then
			echo "$(CACHE) has no .laptime-cache, so it was not made for this: remove what is Laptime's by hand" >&2
			exit 1
		fi
		# On a larger disk it may be behind a link, which stays.
		cache="$$(readlink -f "$(CACHE)")"
		du -sh "$$cache"
		# An engine mounts the folder of another platform's layers on itself.
		{ grep -o " $$cache/storage/[^ ]*" /proc/self/mounts || true; } | sort -r | xargs -r umount
		chmod -R u+w "$$cache"
		find "$$cache" -mindepth 1 -maxdepth 1 ! -name proof ! -name .laptime-cache -exec rm -rf {} +
		if [ -e "$$cache/proof" ]; then
			# Nothing builds it again.
			echo "kept: when each check passed (make standing), in $$cache/proof"
		else
			rm -f "$$cache/.laptime-cache"
			[ -L "$(CACHE)" ] || rmdir "$$cache"
		fi
	fi
	# By name and first without force: another name of the same image is somebody else's, and so are
	# containers of that one. Docker leaves out the registry of its names.
	for engine in docker podman buildah; do
		command -v $$engine >/dev/null || continue
		name='{{.Repository}}:{{.Tag}}'
		if [ $$engine = buildah ]; then name='{{.Name}}:{{.Tag}}'; fi
		for force in "" --force; do
			{ $$engine images --format "$$name" 2>/dev/null || true; } |
				{ grep -E '^(docker\.io/)?laptime/[^:]+:[^<]' || true; } | sort -u |
				xargs -r $$engine rmi $$force >/dev/null 2>&1 || true
		done
	done
	# Only it keeps each step of a build as an image of its own: those on the base that is made here
	# (images/imagebuild/base.py). Others are somebody else's, and so are containers.
	if command -v buildah >/dev/null && [ "$$(id -u)" = 0 ]; then
		{ buildah images --quiet --filter dangling=true --filter label=dev.laptime.base | xargs -r buildah rmi; } >/dev/null 2>&1 || true
	fi

.PHONY: clean
clean: ## remove what was built in the checkout (the cache stays)
	rm -rf $(VENV) operator/.hypothesis operator/.import_linter_cache
	find . -name .git -prune -o -type d \( -name __pycache__ -o -name .mypy_cache -o -name .ruff_cache \
		-o -name .pytest_cache -o -name '*.egg-info' \) -print0 | xargs -0r rm -rf
