# Two commands are enough: make run, make test. The rest is for people who change Bedstone.

PYTHON ?= python3
PORT ?= 3000
BIN := .venv/bin
READY := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: help setup run check test docs bench bench-server bench-search bench-knowledge bench-salesforce bench-pages soak conformance outside-clients screenshots clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY)  ## Make .venv with everything the default needs

# uv where it is installed, else venv and pip.
UV := $(shell command -v uv)
INSTALL = $(if $(UV),uv pip install --quiet --python $(BIN)/python,$(BIN)/python -m pip install --quiet)
WHEEL = $(if $(UV),uv build --quiet --wheel --out-dir $(WHEELS),$(BIN)/python -m pip wheel --quiet --no-deps -w $(WHEELS))
WHEELS := .cache/wheels
MODEL := packages/bedstone-minilm
MODEL_READY := $(WHEELS)/.minilm

$(READY): pyproject.toml $(MODEL_READY)
	@echo "Installing into .venv ..."
	@$(INSTALL) $(WHEELS)/bedstone_minilm-*.whl --editable . --group dev
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Bedstone needs Python 3.11 or later; point to one with: make $(MAKECMDGOALS) PYTHON=python3.11"; exit 1; }
	@echo "Making .venv ..."
	@if [ -n "$(UV)" ]; then uv venv --quiet --allow-existing --python $(PYTHON) .venv; \
	else $(PYTHON) -m venv .venv && $(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'; fi

$(MODEL_READY): $(wildcard $(MODEL)/*.py $(MODEL)/*.toml $(MODEL)/*.txt $(MODEL)/*.json $(MODEL)/src/*/*.py) | $(BIN)/python
	@echo "Building the embedding model, once ..."
	@rm -rf $(WHEELS) $(MODEL)/src/bedstone_minilm/model.onnx $(MODEL)/src/bedstone_minilm/tokenizer.json
	@mkdir -p $(WHEELS) && $(WHEEL) $(MODEL) && touch $@

run: setup  ## Serve the demo content and the page on http://localhost:3000
	@$(BIN)/bedstone docs build demo/docs --config demo/bedstone.toml --description "Kestrel Fleet API (demo content)"
	@$(BIN)/bedstone serve --transport http --port $(PORT) --config demo/bedstone.toml

check: setup  ## Format, lint, types, layers, generated docs
	@$(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@layers=$$($(BIN)/lint-imports --no-cache 2>&1) || { echo "$$layers"; exit 1; }
	@$(BIN)/python docs/build.py --check

test: check  ## Everything CI runs
	@$(BIN)/pytest -q -n 2 --dist loadfile

docs: setup  ## Write the generated reference pages again
	@$(BIN)/python docs/build.py

bench: bench-server bench-search bench-knowledge bench-salesforce bench-pages  ## Every benchmark

bench-server: setup  ## Start-up and CPU per call beside a bare SDK server
	@PYTHONPATH=tests $(BIN)/python benchmarks/bench_server.py

bench-search: setup  ## Search quality and cost, and the engine beside its libraries (SIZES=1000,10000,100000)
	@$(BIN)/python benchmarks/bench_search.py $(if $(SIZES),--sizes $(SIZES))

bench-knowledge: setup  ## Reading, embedding and searching files, beside peers (BEDSTONE_PEERS_PYTHON)
	@$(BIN)/python benchmarks/bench_knowledge.py

bench-salesforce: setup  ## The SOQL parser beside another one, and the demo org
	@$(INSTALL) --group node
	@PYTHONPATH=tests:benchmarks $(BIN)/python benchmarks/bench_salesforce.py

bench-pages: setup  ## What the pages cost with 10,000 documents and 4,818 objects
	@PYTHONPATH=tests:benchmarks $(BIN)/python benchmarks/bench_pages.py

soak: setup  ## Kill the server at random moments, again and again (KILLS=60)
	@PYTHONPATH=tests $(BIN)/python tests/soak/knowledge.py $(if $(KILLS),--kills $(KILLS))

conformance: setup  ## The official MCP conformance suite against this server
	@$(INSTALL) --group node
	@PYTHONPATH=tests $(BIN)/python tests/conformance/run.py

screenshots: setup  ## Pictures of every page for the README; needs Chromium
	@PYTHONPATH=tests $(BIN)/python scripts/screenshots.py

outside-clients: setup  ## Clients written by others against this server
	@$(INSTALL) --group node
	@$(BIN)/pytest -q tests/outside

clean:  ## Remove everything that was made
	@rm -rf .venv .cache dist
