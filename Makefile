# `make` alone lists the targets. Each creates the environment that it needs. `make run`, `make test` and `make lint`
# need only Python 3.11; CONTRIBUTING.md says what the other tests need, and how long each target takes.

PORT ?= 8080
# More arguments for pytest, as in `make test-fast TESTS="-k names -x"`.
TESTS ?=
# The report.json to compare with, as in `make coverage BEFORE=../base/build/coverage/report.json`.
BEFORE ?=
# More arguments for the mutants, as in `make mutants MUTANTS="--fresh -j 4"`.
MUTANTS ?=
# --upgrade takes the newest versions that pyproject.toml allows.
LOCK ?=
# Which benchmarks to run; all when empty.
BENCH ?=
# More arguments for the demo.
DEMO ?=
# Which programs `make components` installs.
COMPONENTS ?= all
# Which image `make image` builds, gateway or pipeline, and what it is called; sluice:VERSION when empty.
TARGET ?= gateway
IMAGE ?=
# 0 leaves the demo's S3 store out, and does not install it.
S3 ?= 1
# 1 has the demo share a view and count usage, for `make worker` beside it.
PIPELINE ?= 0

is_new_enough := -c 'import sys; sys.exit(sys.version_info < (3, 11))'
PYTHON ?= $(shell for python in python3.13 python3.12 python3.11 python3.14 python3 python; do \
	$$python $(is_new_enough) 2>/dev/null && echo $$python && exit; done; echo no-python)

bin := .venv/bin
lanes = $(bin)/python deploy/dev/lanes.py
pytest = $(if $(TESTS),--pytest $(TESTS))
protos := $(wildcard proto/gateway/v1/*.proto)

# Touched when an environment is complete, so that the next start does not look again.
run_ready := .venv/.run
run_without_s3_ready := .venv/.run-without-s3
pipeline_ready := .venv/.pipeline
dev_ready := .venv/.dev
client_ready := .venv-client/.ready

.DEFAULT_GOAL := help
.PHONY: help run worker test test-fast test-all test-components test-spark test-helm test-fleet test-deep test-release \
	coverage mutants spark-tables environments components lint format proto proto-check \
	proto-breaking chart bench lock image clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(if $(filter 0,$(S3)),$(run_without_s3_ready),$(run_ready)) ## Serve sample tables on 127.0.0.1 (PORT=8080) until Ctrl-C
	@exec $(bin)/sluice demo --port $(PORT) $(if $(filter 0,$(S3)),--no-s3) $(if $(filter 1,$(PIPELINE)),--pipeline) $(DEMO)

worker: $(pipeline_ready) ## Work for `make run PIPELINE=1` beside it: views and usage, on Spark (needs Java 17)
	@SLUICE_LOG_LEVEL=info exec $(bin)/sluice pipeline worker --config .sluice/server.yaml --metrics 127.0.0.1:0

test: $(dev_ready) $(client_ready) ## Run the tests that need no program from apt, Go or npm
	@HYPOTHESIS_PROFILE=ci $(lanes) fast components --without-system $(pytest)

test-fast: $(dev_ready) ## Run the unit and contract tests that take milliseconds
	@HYPOTHESIS_PROFILE=fast $(lanes) fast --budget 60 $(pytest)

test-all: $(dev_ready) $(client_ready) ## Run what CI runs: `make test`, and the tests that need a program from apt, Go, npm or Maven
	@HYPOTHESIS_PROFILE=ci $(lanes) fast components spark helm fleet $(pytest)

test-components: $(dev_ready) $(client_ready) ## Run the tests with real components
	@$(lanes) components $(pytest)

test-spark: $(dev_ready) $(client_ready) ## Run the tests that need a JVM: Spark and Delta Kernel
	@$(lanes) spark $(pytest)

test-helm: $(dev_ready) $(client_ready) ## Run the Helm chart on a Kubernetes API server
	@$(lanes) helm $(pytest)

test-fleet: $(dev_ready) $(client_ready) ## Run replicas of every service under load behind a proxy, while some fail
	@$(lanes) fleet $(pytest)

test-deep: $(dev_ready) $(client_ready) ## Run the tests marked deep, and the Hypothesis tests with 2,000 examples
	@HYPOTHESIS_PROFILE=deep $(lanes) deep $(pytest)

test-release: $(dev_ready) $(client_ready) ## Run what `make test-all` leaves out: the lanes deep and release
	@HYPOTHESIS_PROFILE=deep $(lanes) deep release $(pytest)

environments: $(dev_ready) $(client_ready) ## Create the virtual environments of the tests and of their clients

coverage: $(dev_ready) $(client_ready) ## Measure the branch coverage of `make test-all` by lane and package (BEFORE=report.json)
	@$(if $(BEFORE),test -r $(BEFORE) || { echo "make coverage: cannot read $(BEFORE)" >&2; exit 1; })
	@HYPOTHESIS_PROFILE=ci $(lanes) fast components spark helm fleet --coverage build/coverage $(pytest)
	@$(bin)/python deploy/dev/coverage_report.py build/coverage $(if $(BEFORE),--against $(BEFORE))

mutants: $(dev_ready) ## Run the fast tests on each of 240 mutants of the product, and list the survivors
	@$(bin)/python -m tests.mutants run $(MUTANTS)

spark-tables: $(dev_ready) $(client_ready) ## Write the Spark reference tables that the cache lacks, and their archive (20 minutes after a change of a generator)
	@$(bin)/python -m tests.oracles.fixtures --pack

# Not a stamp: the programs are outside this folder, and checking for them takes no time.
components: ## Install the programs of test-all into the user's cache (COMPONENTS=basic, kubernetes or a name)
	@$(call need_python); $(PYTHON) deploy/dev/components.py $(COMPONENTS)

lint: $(dev_ready) ## Check style, types, layers, protos and the tree
	@$(bin)/ruff check
	@$(bin)/ruff format --check
	@$(bin)/mypy
	@PYTHONPATH=recipient/src $(bin)/lint-imports --no-logo
	@$(bin)/buf lint proto
	@$(bin)/buf format proto --diff --exit-code
	@.ci/check-proto fresh
	@.ci/check-proto documented
	@.ci/check-proto compatible
	@.ci/check-tree

chart: $(dev_ready) ## Generate the Helm chart's table and schema of values, and copy its alerts and dashboards
	@$(bin)/python -m helm

format: $(dev_ready) ## Format the code, and fix what can be fixed
	@$(bin)/ruff check --fix
	@$(bin)/ruff format
	@$(bin)/buf format proto --write

proto: $(dev_ready) ## Generate gateway/v1, docs/reference and the committed image of v1 from proto
	@PATH="$(CURDIR)/$(bin):$$PATH" $(bin)/python -m grpc_tools.protoc -I proto --python_out=. \
		--grpc_python_out=. --mypy_out=quiet:. --mypy_grpc_out=quiet:. $(protos)
	@PYTHONPATH=. $(bin)/python -m deploy.dev.grpc_reference
	@.ci/check-proto promise

proto-check: $(dev_ready) ## Check that gateway/v1 and docs/reference are what `make proto` would write
	@.ci/check-proto fresh
	@.ci/check-proto documented

proto-breaking: $(dev_ready) ## Check that the protos are backward compatible with v1 and the last release (AGAINST=ref: or a commit)
	@.ci/check-proto compatible $(AGAINST)

bench: $(dev_ready) $(client_ready) ## Run the benchmarks (BENCH=name for one); results go to bench/results
	@$(bin)/python -m bench $(BENCH)

image: ## Build the container image with docker, podman or buildah (TARGET=gateway IMAGE=name:tag)
	@deploy/image/build $(TARGET) $(IMAGE)

lock: $(dev_ready) ## Pin all dependencies with hashes (LOCK=--upgrade: at the newest versions)
	@.ci/lock $(LOCK)

clean: ## Remove the environments and build output of this checkout; ~/.cache/sluice stays
	rm -rf .venv .venv-client .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .grimp_cache .hypothesis .mutants .sluice *.egg-info build dist \
		recipient/build recipient/dist recipient/src/*.egg-info

$(run_ready): requirements-demo.txt pyproject.toml
	@$(call environment,.venv,requirements-demo.txt) --project --stamp $@ --stamp $(run_without_s3_ready)

$(run_without_s3_ready): requirements.txt pyproject.toml
	@$(call environment,.venv,requirements.txt) --project --stamp $@

$(pipeline_ready): requirements-pipeline.txt pyproject.toml
	@$(call environment,.venv,requirements-pipeline.txt) --project --stamp $@ --stamp $(run_without_s3_ready)

$(dev_ready): requirements-dev.txt pyproject.toml
	@$(call environment,.venv,requirements-dev.txt) --project --stamp $@ --stamp $(run_ready) \
		--stamp $(run_without_s3_ready) --stamp $(pipeline_ready)

$(client_ready): requirements-client.txt
	@$(call environment,.venv-client,requirements-client.txt) --stamp $@

define need_python
	if [ $(PYTHON) = no-python ]; then echo "setting up: needs Python 3.11 or newer; name it with PYTHON=..." >&2; exit 1; fi
endef

define environment
	$(need_python); \
	$(PYTHON) deploy/dev/environment.py $(1) $(2)
endef
