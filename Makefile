# `make run` and `make test` are enough to use Bedstone. The other targets are for contributors.

WINDOWS := $(filter Windows_NT,$(OS))
PYTHON ?= $(if $(WINDOWS),python,python3)
PORT ?= 3000
BIN := .venv/$(if $(WINDOWS),Scripts,bin)
VENV_PYTHON := $(BIN)/python$(if $(WINDOWS),.exe)
READY := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: help setup run check test coverage docs bench bench-server bench-search bench-knowledge bench-salesforce bench-pages bench-cluster bench-replicas scale-model soak soak-cluster cluster test-cluster test-balancer bombs conformance outside-clients platforms screenshots animation clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY)  ## Create .venv with the default and development packages

# Uses uv when it is installed, otherwise venv and pip.
UV := $(shell command -v uv)
INSTALL = $(if $(UV),uv pip install --quiet --python $(VENV_PYTHON),$(VENV_PYTHON) -m pip install --quiet)
WHEEL = $(if $(UV),uv build --quiet --wheel --out-dir $(WHEELS),$(VENV_PYTHON) -m pip wheel --quiet --no-deps -w $(WHEELS))
WHEELS := .cache/wheels
MODEL := packages/bedstone-minilm
MODEL_READY := $(WHEELS)/.minilm

$(READY): pyproject.toml $(MODEL_READY)
	@echo "Installing into .venv ..."
	@$(INSTALL) $(WHEELS)/bedstone_minilm-*.whl --editable '.[ocr,multilingual]' --group dev
	@touch $@

$(VENV_PYTHON):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Bedstone needs Python 3.11 or later; choose one with: make $(MAKECMDGOALS) PYTHON=python3.11"; exit 1; }
	@echo "Creating .venv ..."
	@if [ -n "$(UV)" ]; then uv venv --quiet --allow-existing --python $(PYTHON) .venv; \
	else $(PYTHON) -m venv .venv && $(VENV_PYTHON) -m pip install --quiet --upgrade 'pip>=25.1'; fi

$(MODEL_READY): $(wildcard $(MODEL)/*.py $(MODEL)/*.toml $(MODEL)/*.txt $(MODEL)/*.json $(MODEL)/src/*/*.py) | $(VENV_PYTHON)
	@echo "Building the embedding model, once ..."
	@rm -rf $(WHEELS) $(MODEL)/src/bedstone_minilm/model.* $(MODEL)/src/bedstone_minilm/*.json
	@mkdir -p $(WHEELS) && $(WHEEL) $(MODEL) && touch $@

run: setup  ## Serve the demo content and the web page on http://localhost:3000
	@$(BIN)/bedstone docs build demo/docs --config demo/bedstone.toml --description "Kestrel Fleet API (demo content)"
	@$(BIN)/bedstone serve --transport http --port $(PORT) --config demo/bedstone.toml

check: setup  ## Check formatting, lint, types, import layers, generated docs, spelling and wording
	@$(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@layers=$$($(BIN)/lint-imports --no-cache 2>&1) || { echo "$$layers"; exit 1; }
	@$(BIN)/python docs/build.py --check
	@$(BIN)/codespell
	@$(BIN)/python scripts/check_prose.py

test: check  ## Run what CI runs: the checks, and every test
	@$(BIN)/pytest -q -n 2 --dist loadfile

coverage: setup  ## Run every test with branch coverage, and list the lines and branches that none reaches
	@rm -rf .cache/coverage && mkdir -p .cache/coverage
	@$(BIN)/pytest -q -n 2 --dist loadfile --cov --cov-report=
	@$(BIN)/coverage report

docs: setup  ## Regenerate docs/reference and the code in docs/howto
	@$(BIN)/python docs/build.py

bench: bench-server bench-search bench-knowledge bench-salesforce bench-pages  ## Run every benchmark

bench-server: setup  ## Measure start-up and CPU per call against a bare SDK server
	@PYTHONPATH=tests $(BIN)/python benchmarks/bench_server.py

bench-search: setup  ## Measure search quality and cost (SIZES=1000,10000,100000)
	@$(BIN)/python benchmarks/bench_search.py $(if $(SIZES),--sizes $(SIZES))

bench-knowledge: setup  ## Measure reading, embedding and searching files against peers (BEDSTONE_PEERS_PYTHON)
	@$(BIN)/python benchmarks/bench_knowledge.py

bench-salesforce: setup  ## Measure the SOQL parser, the demo org and the schema graph
	@$(INSTALL) --group node
	@PYTHONPATH=tests:benchmarks $(BIN)/python benchmarks/bench_salesforce.py

bench-pages: setup  ## Measure the pages with 10,000 documents and 4,818 objects
	@PYTHONPATH=tests:benchmarks $(BIN)/python benchmarks/bench_pages.py

bench-cluster: setup  ## Compare one machine with PostgreSQL and a search cluster (SIZE=100000 SHARDS=1)
	@$(INSTALL) --group cluster
	@PYTHONPATH=tests:benchmarks $(BIN)/python benchmarks/bench_cluster.py $(if $(SIZE),--size $(SIZE)) $(if $(SHARDS),--shards $(SHARDS))

bench-replicas: setup  ## Measure what more workers read and more servers answer (FILES=200); needs HAProxy
	@PYTHONPATH=tests:benchmarks $(BIN)/python benchmarks/bench_replicas.py $(if $(FILES),--files $(FILES))

scale-model: setup  ## Simulate shards, replicas, queues and failures (SEARCH_TIMES=1 measures the times it starts from)
	@$(BIN)/python benchmarks/$(if $(SEARCH_TIMES),search_times.py,scale_model.py)

soak: setup  ## Kill the server repeatedly at random moments (KILLS=60)
	@PYTHONPATH=tests $(BIN)/python tests/soak/knowledge.py $(if $(KILLS),--kills $(KILLS))

soak-cluster: setup  ## Kill servers, workers, search nodes and the database (KILLS=200 SEARCH=opensearch); needs HAProxy
	@$(INSTALL) --group cluster
	@PYTHONPATH=tests $(BIN)/python tests/soak/cluster.py $(if $(KILLS),--kills $(KILLS)) $(if $(SEARCH),--search $(SEARCH))

cluster: setup  ## Run the demo on PostgreSQL, a bucket, a search cluster, two servers and two workers behind HAProxy (WITHOUT=search)
	@$(if $(findstring search,$(WITHOUT)),,$(INSTALL) --group cluster)
	@PYTHONPATH=tests $(BIN)/python scripts/cluster.py --port $(PORT) $(if $(WITHOUT),--without $(WITHOUT))

test-cluster: setup  ## Test servers and workers behind HAProxy and nginx, and the search cluster; needs both
	@$(INSTALL) --group cluster
	@$(BIN)/pytest -q -n 2 --dist loadgroup tests/cluster

test-balancer: setup  ## Run the contracts and the page journeys through two servers on PostgreSQL (BALANCER=haproxy-sticky)
	@$(BIN)/pytest -q -n 2 --dist loadfile tests/contracts tests/browser \
	  --balancer $(or $(BALANCER),haproxy-sticky) -k "not memory and not stdio"

bombs: setup  ## Add files that try to exhaust time, memory or disk (HOSTILE=program that writes more of them)
	@PYTHONPATH=tests $(BIN)/python tests/soak/bombs.py $(if $(HOSTILE),--hostile $(HOSTILE))

conformance: setup  ## Run the official MCP conformance suite
	@$(INSTALL) --group node
	@PYTHONPATH=tests $(BIN)/python tests/conformance/run.py

screenshots: setup  ## Take the screenshots for the README; needs Chromium
	@PYTHONPATH=tests $(BIN)/python scripts/screenshots.py

animation: setup  ## Make the animated picture for the README; needs Chromium
	@PYTHONPATH=tests $(BIN)/python scripts/animation.py

platforms: setup  ## Check that every dependency has wheels for the platforms in the README
	@$(INSTALL) --group platforms
	@PATH="$(BIN):$$PATH" $(BIN)/python scripts/check_platforms.py

outside-clients: setup  ## Run third-party clients against this server
	@$(INSTALL) --group node
	@$(BIN)/pytest -q tests/outside

clean:  ## Remove .venv, caches and build output
	@rm -rf .venv .cache dist
