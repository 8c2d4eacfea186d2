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
SEEDS ?= 2000
N ?= 1000
MINUTES ?= 30
# Where `make run` listens.
LISTEN ?= 127.0.0.1:3000
# The page of the arena.
PAGE := examples/arena/web
# The sources of the console; it is built into the package.
CONSOLE := client_ts/console
BUILT_CONSOLE := gamedb/console/index.html
# More arguments for pytest: `make test ARGS="-k schedule -x"`.
ARGS ?=
# How many processes share the tests of Python in `make test`.
JOBS ?= 2
# `make test COVERAGE=1` also measures what the tests cover, says so, and fails below the limits (tests/coverage_report.py).
COVERAGE ?=

.PHONY: help run quickstart demo-crash wheel page pictures console console-test test sdk check docs format fuzz crash soak bench clean

help: ## Show this list
	@awk -F ': .*## ' '/^[a-z-]+: .*## /{printf "  make %-10s %s\n", $$1, $$2}' Makefile

run: .venv/.ready $(PAGE)/dist/index.html $(BUILT_CONSOLE) ## Play the arena in a browser, on http://127.0.0.1:3000; its data is in data/
	@$(PY) -m gamedb start examples.arena.module:module --listen $(LISTEN) --data-dir data

quickstart: .venv/.ready ## Play a very small game in the terminal; its data is in data/
	@$(PY) -m examples.quickstart $(ARGS)

demo-crash: .venv/.ready ## Kill the arena in the middle, start it again, and see that everything goes on
	@$(PY) -m examples.arena.demo_crash

page: .venv/.ready $(PAGE)/dist/index.html ## Test the page of the arena in a browser (Chromium)
	@cd $(PAGE) && GAMEDB_PYTHON='$(abspath $(PY))' npm test --silent

pictures: ## The same, and keep the pictures in docs/images
	@ARENA_PICTURES=1 CONSOLE_PICTURES=1 $(MAKE) page console-test

console: $(BUILT_CONSOLE) ## Build the console, which servers have at /console/

console-test: .venv/.ready $(BUILT_CONSOLE) ## Test the console in a browser (Chromium)
	@cd $(CONSOLE) && GAMEDB_PYTHON='$(abspath $(PY))' npm test --silent

wheel: .venv/.ready $(PAGE)/dist/index.html $(BUILT_CONSOLE) ## Build the wheel, with the arena's page and the console, into dist/
	@$(PY) -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

test: .venv/.ready $(if $(ARGS),,$(PAGE)/dist/index.html $(BUILT_CONSOLE)) ## Run all tests; with COVERAGE=1, measure what they cover; with ARGS, run those of Python that they choose
	$(if $(and $(ARGS),$(COVERAGE)),$(error COVERAGE measures all tests; leave out ARGS))
	@$(if $(ARGS),$(PY) -m pytest $(ARGS),MAKE=$(MAKE) PY=$(PY) JOBS='$(JOBS)' COVERAGE='$(COVERAGE)' tests/all.sh)

sdk: .venv/.ready client_ts/node_modules/.ready ## Run the tests with the official TypeScript SDK
	@cd client_ts && npm test --silent

check: .venv/.ready client_ts/node_modules/.ready $(PAGE)/node_modules/.ready $(CONSOLE)/node_modules/.ready ## Check format, lint and types
	@$(PY) -m ruff format --check
	@$(PY) -m ruff check
	@$(PY) -m mypy
	@cd client_ts && npm run --silent check
	@cd $(PAGE) && npm run --silent check
	@cd $(CONSOLE) && npm run --silent check

docs: .venv/.docs-ready ## Build the guides and the reference as a site: build/docs/index.html
	@rm -rf build/docs
	@$(PY) -m sphinx --quiet --fail-on-warning --conf-dir docs/site . build/docs
	@echo "the site is in build/docs: open build/docs/index.html"

format: .venv/.ready ## Format the code and fix what can be fixed
	@$(PY) -m ruff format
	@$(PY) -m ruff check --fix

fuzz: .venv/.ready ## Run the tests that search for bugs, for long: make fuzz STEPS=100000 PROGRAMS=10000
	@GAMEDB_FUZZ_STEPS=$(STEPS) WORKFLOW_PROGRAMS=$(PROGRAMS) GAMEDB_FUZZ_SCENARIOS=$(SCENARIOS) \
	  GAMEDB_SIMULATION_SEEDS=$(SEEDS) \
	  $(PY) -m pytest -k "stateful or fuzz or property or conservation" $(ARGS)

crash: .venv/.ready ## Kill a writing process again and again: make crash N=1000
	@GAMEDB_CRASH_KILLS=$(N) $(PY) -m pytest tests/crash $(ARGS)

soak: .venv/.ready ## Use, abuse and kill a served game for long: make soak MINUTES=480 ARGS="--seed 7"
	@$(PY) -m tests.soak --minutes $(MINUTES) $(ARGS)

bench: .venv/.ready ## Run the benchmarks; JSON lines go to stdout
	@found=0; for file in benchmarks/[a-z]*.py; do \
	  name=$$(basename "$$file" .py); \
	  if grep -q '__main__' "$$file" 2>/dev/null; then found=1; $(PY) -m "benchmarks.$$name" $(ARGS); fi; \
	done; if [ $$found = 0 ]; then echo "there are no benchmarks yet"; fi

clean: ## Remove what was built; data/ stays
	@rm -rf .venv $(PAGE)/node_modules $(PAGE)/dist $(CONSOLE)/node_modules gamedb/console client_ts/node_modules client_ts/dist client_ts/tests/sdk/generated build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis htmlcov .coverage .coverage.* *.egg-info
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

# What builds the site. Only `make docs` needs it.
.venv/.docs-ready: .venv/.ready
	@echo "installing what builds the site into .venv"
	@$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch .venv/.docs-ready

# The packages of the TypeScript side, just as package-lock.json says.
client_ts/node_modules/.ready: $(wildcard client_ts/package*.json)
	@if ! node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' 2>/dev/null; then \
	  echo "The TypeScript side (client_ts) needs Node 20.19 or newer; found: $$(node --version 2>/dev/null || echo none)." >&2; \
	  echo "Install it, or test the Python side alone: make test ARGS=tests" >&2; exit 1; \
	fi; \
	echo "installing the packages of client_ts"; \
	cd client_ts && npm ci --silent --no-audit --no-fund
	@touch client_ts/node_modules/.ready

# The page of the arena: built when its sources are newer. Only this needs Node.
$(PAGE)/node_modules/.ready: $(wildcard $(PAGE)/package*.json)
	@if ! node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' 2>/dev/null; then \
	  echo "The page of the arena needs Node 20.19 or newer to be built; found: $$(node --version 2>/dev/null || echo none)." >&2; \
	  echo "Install it, or play in the terminal: make quickstart" >&2; exit 1; \
	fi; \
	echo "installing the packages of the arena's page"; \
	cd $(PAGE) && PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm ci --silent --no-audit --no-fund
	@touch $(PAGE)/node_modules/.ready

$(PAGE)/dist/index.html: $(PAGE)/node_modules/.ready $(wildcard $(PAGE)/*.html $(PAGE)/vite.config.ts) $(shell find $(PAGE)/src -type f 2>/dev/null)
	@echo "building the arena's page"
	@cd $(PAGE) && npm run --silent build -- --logLevel warn

# The console, in the same way.
$(CONSOLE)/node_modules/.ready: $(wildcard $(CONSOLE)/package*.json)
	@if ! node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' 2>/dev/null; then \
	  echo "The console needs Node 20.19 or newer to be built; found: $$(node --version 2>/dev/null || echo none)." >&2; exit 1; \
	fi; \
	echo "installing the packages of the console"; \
	cd $(CONSOLE) && PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm ci --silent --no-audit --no-fund
	@touch $(CONSOLE)/node_modules/.ready

$(BUILT_CONSOLE): $(CONSOLE)/node_modules/.ready $(wildcard $(CONSOLE)/*.html $(CONSOLE)/vite.config.ts) $(shell find $(CONSOLE)/src -type f 2>/dev/null)
	@echo "building the console"
	@cd $(CONSOLE) && npm run --silent build -- --logLevel warn
