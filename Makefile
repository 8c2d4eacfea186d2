# Everything from a fresh clone, with Python 3.11 or newer and make; for the TypeScript side also Node 20.19 or newer.
# `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# The Python that makes .venv: `make PYTHON=python3.12 test`. By default the first that is new enough.
PYTHON ?=
PY := .venv/bin/python
# How long the long tests are.
STEPS ?= 20000
PROGRAMS ?= 3000
SCENARIOS ?= 300
N ?= 1000
# More arguments for pytest: `make test ARGS="-k schedule -x"`.
ARGS ?=

.PHONY: help run test sdk check format fuzz crash bench clean

help: ## Show this list
	@awk -F ': .*## ' '/^[a-z]+: .*## /{printf "  make %-8s %s\n", $$1, $$2}' Makefile

run: .venv/.ready ## Play the quickstart game for some seconds; its data is in data/
	@$(PY) -m examples.quickstart

test: .venv/.ready ## Run all tests; with ARGS, those of Python that they choose
	@$(PY) -m pytest $(ARGS)
	@$(if $(ARGS),,$(MAKE) sdk)

sdk: .venv/.ready client_ts/node_modules/.ready ## Run the tests with the official TypeScript SDK
	@cd client_ts && npm test --silent

check: .venv/.ready client_ts/node_modules/.ready ## Check format, lint and types
	@$(PY) -m ruff format --check
	@$(PY) -m ruff check
	@$(PY) -m mypy
	@cd client_ts && npm run --silent check

format: .venv/.ready ## Format the code and fix what can be fixed
	@$(PY) -m ruff format
	@$(PY) -m ruff check --fix

fuzz: .venv/.ready ## Run the tests that search for bugs, for long: make fuzz STEPS=100000 PROGRAMS=10000
	@GAMEDB_FUZZ_STEPS=$(STEPS) WORKFLOW_PROGRAMS=$(PROGRAMS) GAMEDB_FUZZ_SCENARIOS=$(SCENARIOS) \
	  $(PY) -m pytest -k "stateful or fuzz or property or conservation" $(ARGS)

crash: .venv/.ready ## Kill a writing process again and again: make crash N=1000
	@GAMEDB_CRASH_KILLS=$(N) $(PY) -m pytest tests/crash $(ARGS)

bench: .venv/.ready ## Run the benchmarks; JSON lines go to stdout
	@found=0; for file in benchmarks/[a-z]*.py; do \
	  name=$$(basename "$$file" .py); \
	  if grep -q '__main__' "$$file" 2>/dev/null; then found=1; $(PY) -m "benchmarks.$$name" $(ARGS); fi; \
	done; if [ $$found = 0 ]; then echo "there are no benchmarks yet"; fi

clean: ## Remove what was built; data/ stays
	@rm -rf .venv client_ts/node_modules client_ts/tests/sdk/generated build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis htmlcov .coverage *.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment: made once, and again brought up to date when pyproject.toml changes.
.venv/.ready: pyproject.toml
	@python='$(PYTHON)'; \
	if [ -z "$$python" ]; then \
	  for candidate in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	    if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	      python=$$candidate; break; \
	    fi; \
	  done; \
	fi; \
	if [ -z "$$python" ]; then \
	  echo "gamedb needs Python 3.11 or newer, and none was found on PATH." >&2; \
	  echo "Install one, or say where it is: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; \
	fi; \
	if ! "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	  echo "gamedb needs Python 3.11 or newer; $$python is: $$("$$python" --version 2>&1 || true)" >&2; exit 1; \
	fi; \
	if [ ! -x $(PY) ] || ! $(PY) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	  rm -rf .venv; \
	  echo "making .venv with $$("$$python" --version)"; \
	  if ! "$$python" -m venv .venv; then \
	    rm -rf .venv; echo "python -m venv failed; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; \
	  fi; \
	fi; \
	echo "installing gamedb and its tools into .venv"; \
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch .venv/.ready

# The packages of the TypeScript side, just as package-lock.json says.
client_ts/node_modules/.ready: $(wildcard client_ts/package*.json)
	@if ! node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' 2>/dev/null; then \
	  echo "The TypeScript side (client_ts) needs Node 20.19 or newer; found: $$(node --version 2>/dev/null || echo none)." >&2; \
	  echo "Install it, or test the Python side alone: make test ARGS=tests" >&2; exit 1; \
	fi; \
	echo "installing the packages of client_ts"; \
	cd client_ts && npm ci --silent --no-audit --no-fund
	@touch client_ts/node_modules/.ready
