# Everything runs from .venv; `make setup` makes it, and every other target makes it if needed.
# PYTHON=... selects the interpreter; otherwise the first of these that is one of 3.11 to 3.13.
PYTHONS := $(or $(PYTHON),python3.11 python3.12 python3.13 python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
PEERS := $(VENV)/.peers
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: setup demo test test-rest test-all lint kafka peers bench page docs clean
PYTEST := $(BIN)/python -m pytest -n 2 --no-loadscope-reorder
# Without cached bytecode every process that tests start compiles the package again.
unexport PYTHONDONTWRITEBYTECODE

setup: $(STAMP)

# The libraries of the live map are fetched while kernels compile.
$(STAMP): pyproject.toml constraints.txt page/package-lock.json page/vendor.mjs
	@for python in $(PYTHONS); do \
		"$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null \
			&& echo "Installing into $(VENV) with $$python" && exec "$$python" -m venv $(VENV); \
	done; echo "Placewire needs Python 3.11, 3.12 or 3.13 (tried $(PYTHONS); set PYTHON=...)"; exit 2
	@echo "Downloading Python packages (about a minute)"
	@$(PIP) -e '.[dev,docs]'
	@$(BIN)/python -m placewire.spark.session --check || $(PIP) -e '.[java]'
	@$(BIN)/python -m placewire.spark.session
	@$(BIN)/python page/fetch.py --optional & fetching=$$!; \
	$(BIN)/python -m placewire.warm || exit; wait $$fetching
	@touch $(STAMP)

# Peers of the benchmarks and the Kafka client that their tests use.
peers: $(PEERS)

$(PEERS): $(STAMP)
	@echo "Installing the peers of the benchmarks"
	@$(PIP) -e '.[bench]'
	@touch $(PEERS)

demo: setup
	$(BIN)/placewire demo

# Lint, types, import contracts and every test that is not slow. Hypothesis repeats the same examples.
test: setup lint
	@echo "Running quick tests in 2 processes"
	@PLACEWIRE_TESTS=quick $(PYTEST) || { echo "make test: tests failed; repeat one with $(BIN)/pytest PATH::NAME"; exit 1; }

# What `make test` leaves out: slow tests, and property tests with many random examples.
# A missing peer of the benchmarks fails here and is skipped in `make test`.
test-rest: peers kafka
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

bench: peers
	$(BIN)/python -m bench run $(or $(ARGS),all)

# The documentation as a website in site/. Builds without a network, and fails on a broken link.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open http://127.0.0.1:8000 after: $(BIN)/python -m http.server --directory site"

# The libraries and outlines of the live map, from npm into the package, if `make setup` could not.
page: setup
	@$(BIN)/python page/fetch.py

clean:
	rm -rf $(VENV) src/placewire/serve/page/vendor page/node_modules page/.fetch-failed .cache bench/out site .mypy_cache .ruff_cache .pytest_cache .hypothesis
