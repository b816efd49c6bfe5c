# Everything runs from .venv; `make setup` makes it, and every other target makes it if needed.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

.PHONY: setup demo test test-rest test-all lint kafka bench page docs clean
PYTEST := $(BIN)/python -m pytest -n 2 --no-loadscope-reorder
# Without cached bytecode every process that tests start compiles the package again.
unexport PYTHONDONTWRITEBYTECODE

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "Placewire needs Python 3.11 ($(PYTHON) is not on the path; set PYTHON=...)"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,bench,draw,hypergraph,snowball,serve,postgres,delta,docs]'
	@$(BIN)/python -m placewire.spark.session --check || $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[java]'
	@$(BIN)/python -m placewire.spark.session
	@echo "Compiling kernels (once, two or three minutes)"
	@$(BIN)/python -c "from placewire.warm import warm_kernels; warm_kernels()"
	@touch $(STAMP)

demo: setup
	$(BIN)/placewire demo

# Lint, types, import contracts and every test that is not slow. Hypothesis repeats the same examples.
test: setup lint
	@echo "Running quick tests in 2 processes"
	@PLACEWIRE_TESTS=quick $(PYTEST) || { echo "make test: tests failed; repeat one with $(BIN)/pytest PATH::NAME"; exit 1; }

# What `make test` leaves out: slow tests, and property tests with many random examples.
test-rest: setup kafka
	@echo "Running slow tests and property tests with many examples in 2 processes"
	@PLACEWIRE_TESTS=thorough $(PYTEST) -m "slow or hypothesis" || { echo "make test-rest: tests failed; repeat one with PLACEWIRE_TESTS=thorough $(BIN)/pytest -m '' PATH::NAME"; exit 1; }

test-all: test test-rest

# The jars that tests of Kafka need, by Maven coordinates, into .cache or PLACEWIRE_KAFKA_JARS.
kafka: setup
	@$(BIN)/python tests/support/kafka_jars.py

lint: setup
	$(BIN)/ruff check .
	@$(BIN)/ruff format --check . || { echo "make lint: format these files with $(BIN)/ruff format ."; exit 1; }
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: setup
	$(BIN)/python -m bench run $(or $(ARGS),all)

# The documentation as a website in site/. Builds without a network, and fails on a broken link.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open http://127.0.0.1:8000 after: $(BIN)/python -m http.server --directory site"

# The libraries and outlines of the live map, from npm into the package; only to change their versions.
page:
	cd page && npm ci --ignore-scripts && node vendor.mjs

clean:
	rm -rf $(VENV) .cache bench/out site .mypy_cache .ruff_cache .pytest_cache .hypothesis
