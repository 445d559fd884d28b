# The one command path: continuous integration runs these targets too. Every target that needs it builds .venv first.

PYTHON  ?= python3
VENV    ?= .venv
SECONDS ?= 60
# `make test JOBS=0` runs the tests in one process.
JOBS    ?= auto
BIN     := $(VENV)/bin
READY   := $(VENV)/.ready
# The virtual environment carries the interpreter; nothing is compiled from bytecode caches of another user.
PYTEST  := $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help setup venv style format types test unit integration packaging fuzz fuzz-postgres bench bench-apply bench-postgres tpc \
  demo clean

help: ## Show this text
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

setup: $(READY) ## Create .venv and install the package with its development tools

venv: setup

# Rebuilt whenever pyproject.toml changes. pip refuses nothing when it runs as root inside a virtual environment; the
# variable only silences its warning.
$(READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	PIP_ROOT_USER_ACTION=ignore $(BIN)/python -m pip install --disable-pip-version-check --quiet --editable '.[dev]'
	touch $(READY)

style: $(READY) ## Check formatting and lint rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

format: $(READY) ## Format the code and apply safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(READY) ## Check types (mypy, strict)
	$(BIN)/mypy

test: style types ## Everything: style, types, unit, golden, property, integration and packaging tests
	$(PYTEST) tests

unit: $(READY) ## The fast tests only
	$(PYTEST) tests -m "not integration and not packaging and not fuzz and not slow"

integration: $(READY) ## The tests that run dbt
	$(PYTEST) tests -m integration

packaging: $(READY) ## Install editable and as a wheel into fresh environments, and run a project from each
	$(PYTEST) tests -m packaging

fuzz: $(READY) ## Random views and changes against recompute, for SECONDS=60 seconds
	$(BIN)/python -m tests.property.fuzz --seconds $(SECONDS)

bench: $(READY) ## Measure refreshes against recompute and hand-written SQL
	$(BIN)/python -m benchmarks

bench-apply: $(READY) ## Measure the apply strategies of grouped aggregates; QUICK=--quick for a look
	$(BIN)/python -m benchmarks.apply $(QUICK)

bench-postgres: $(READY) ## Compare refreshes on PostgreSQL with its own REFRESH MATERIALIZED VIEW
	$(BIN)/python -m benchmarks.postgres

fuzz-postgres: $(READY) ## Random views and changes on a PostgreSQL, for SECONDS=60 seconds
	$(BIN)/python -m tests.postgres.fuzz --seconds $(SECONDS)

tpc: $(READY) ## Maintain every query of TPC-H and TPC-DS through rounds of changes, and compare after each
	$(BIN)/python -m benchmarks.tpc

demo: $(READY) ## Maintain sixteen views on a year of flights, and show what each refresh cost
	$(BIN)/python integration_tests/demo.py

clean: ## Remove .venv, build results and caches
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
