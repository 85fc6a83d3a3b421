# Two commands are enough: make run, make test. The rest is for people who change Bedstone.

PYTHON ?= python3
PORT ?= 3000
BIN := .venv/bin
READY := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: help setup run check test docs bench bench-server conformance outside-clients clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY)  ## Make .venv with everything the default needs

# uv where it is installed, else venv and pip.
INSTALL = $(if $(shell command -v uv),uv pip install --quiet --python $(BIN)/python,$(BIN)/python -m pip install --quiet)

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Bedstone needs Python 3.11 or later; point to one with: make $(MAKECMDGOALS) PYTHON=python3.11"; exit 1; }
	@echo "Preparing .venv ..."
	@if command -v uv >/dev/null; then uv venv --quiet --allow-existing --python $(PYTHON) .venv; \
	else $(PYTHON) -m venv .venv && $(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'; fi
	@$(INSTALL) --editable . --group dev
	@touch $@

run: setup  ## Serve the demo content and the page on http://localhost:3000
	@$(BIN)/bedstone serve --transport http --port $(PORT) --config demo/bedstone.toml

check: setup  ## Format, lint, types, layers, generated docs
	@$(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@layers=$$($(BIN)/lint-imports --no-cache 2>&1) || { echo "$$layers"; exit 1; }
	@$(BIN)/python docs/build.py --check

test: check  ## Everything CI runs
	@$(BIN)/pytest -q

docs: setup  ## Write the generated reference pages again
	@$(BIN)/python docs/build.py

bench: bench-server  ## Every benchmark

bench-server: setup  ## Start-up and CPU per call beside a bare SDK server
	@PYTHONPATH=tests $(BIN)/python benchmarks/bench_server.py

conformance: setup  ## The official MCP conformance suite against this server
	@$(INSTALL) --group node
	@PYTHONPATH=tests $(BIN)/python tests/conformance/run.py

outside-clients: setup  ## Clients written by others against this server
	@$(INSTALL) --group node
	@$(BIN)/pytest -q tests/outside

clean:  ## Remove everything that was made
	@rm -rf .venv .cache dist
