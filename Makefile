# Everything runs in .venv, which is made on first use and made again when the pins change.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check
PINS   := pyproject.toml constraints.txt
FAST   := $(addprefix tests/test_,registry.py locality.py explain.py untouched.py batches.py tree.py package.py docs.py)

.DELETE_ON_ERROR:
.PHONY: help demo check test lint types format docs coverage results bench dist clean

help:  ## show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-14s %s\n", $$1, $$2 }'

demo: $(VENV)/.demo  ## train the paper's GCN on BA-Shapes, explain it, write a picture and a report
	@$(BIN)/python -m xdegree.demo

check: lint types  ## lint, types and the fast tests, in under a minute
	$(BIN)/python -m pytest -q $(FAST)

test: lint types  ## lint, types, all tests (args: ARGS="tests/test_rules.py -k name")
	$(BIN)/python -m pytest $(or $(ARGS),-n logical --maxprocesses 8 --dist loadfile)

lint: $(VENV)/.dev  ## ruff: rules and format; import-linter: the order of the folders
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo >/dev/null || $(BIN)/lint-imports --no-logo

types: $(VENV)/.dev  ## mypy, strict
	$(BIN)/mypy

format: $(VENV)/.dev  ## mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.dev  ## build the pages into docs/_build, offline; a warning is an error
	$(BIN)/python -m sphinx -W --keep-going -n -q docs docs/_build
	@echo docs/_build/index.html

coverage: $(VENV)/.dev  ## write docs/coverage.md and docs/rules.md from the tables
	@$(BIN)/python docs/write_coverage.py
	@$(BIN)/python docs/write_rules.py

results: $(VENV)/.dev  ## do the paper's experiments (hours) and write docs/results.md and docs/results/; data in XDEGREE_DATA
	$(BIN)/xdegree reproduce all --seeds 5 --page docs/results.md

bench: $(VENV)/.dev  ## run the benchmarks on a quiet machine and write docs/benchmarks.md (args: ARGS=--quick)
	@$(BIN)/python docs/write_benchmarks.py $(ARGS)

dist: $(VENV)/.dev  ## build the wheel and the source distribution into dist, and check them
	rm -rf dist
	$(BIN)/python -m build --quiet
	$(BIN)/twine check --strict dist/*

clean:  ## remove the environment, all caches and what was built
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build docs/_build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo 'xdegree needs Python 3.11 or newer; name one: make PYTHON=python3.12 …' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null \
		|| { echo 'Python lacks its venv module; on Debian: apt install python3-venv' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The environment comes before the stamps but does not age them: only a change of the pins installs again.
$(VENV)/.demo: $(PINS) | $(BIN)/python
	$(PIP) install --quiet -c constraints.txt -e ".[plot,report]"
	@touch $@

$(VENV)/.dev: $(PINS) | $(BIN)/python
	$(PIP) install --quiet -c constraints.txt -e ".[dev]"
	@touch $@ $(VENV)/.demo
