# Each of these first sets up what it needs in a virtual environment, .venv:
#
#   make demo                     the command line's demonstration
#   make test | test-all          what every change must pass; everything
#   make check                    style, types and layers
#   make docs | test-docs         the site; what keeps its pages true
#   make oldest                   the tests with the oldest dependencies
#   make mutants | fuzz           planted bugs; random inputs
#   make bench                    the benchmarks
#   make paper | paper-quick      the paper's tables and figures; with few repetitions

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Empty files that say what is done: the package is installed, its tools for development too, and the
# kernels are compiled.
PACKAGE := $(VENV)/package
STAMP := $(VENV)/installed
KERNELS := $(VENV)/kernels

# The lower bounds in pyproject.toml are meant for the oldest Python we support.
OLDEST_PYTHON ?= python3.11
OLDEST := .venv-oldest

.PHONY: demo test test-all test-docs docs browser check oldest mutants fuzz bench paper paper-quick test-gpu clean

demo: $(PACKAGE)
	$(BIN)/icscm demo

# Python keeps compiled modules and pytest its rewritten ones, also where the environment turns that off:
# without them each process starts twice as slowly.
export PYTHONDONTWRITEBYTECODE :=

# A worker for each core; the libraries beneath start neither threads nor processes of their own.
PYTEST := OMP_NUM_THREADS=1 LOKY_MAX_CPU_COUNT=1 $(BIN)/python -m pytest
IN_PARALLEL := -n auto --dist worksteal

# What every change must pass, in minutes.
test: $(STAMP) $(KERNELS) browser
	$(PYTEST) $(IN_PARALLEL) --cov --cov-report=
	@for package in search stats model tables; do \
	  echo "branches covered in $$package: $$($(BIN)/coverage report --format=total --include="*/$$package/*") %"; \
	  $(BIN)/coverage report --include="*/$$package/*" --fail-under=95 --skip-covered || exit 1; \
	done

# Everything: the tests that take long, many examples of each property, the site, the paper's experiments, fuzzing.
FUZZ_MINUTES ?= 5
test-all: $(STAMP) $(KERNELS) browser docs
	ICSCM_NEED_SITE=1 $(PYTEST) $(IN_PARALLEL) --thorough
	$(BIN)/python -m paper all --quick --out $(VENV)/paper-quick
	$(BIN)/python tests/fuzz --minutes $(FUZZ_MINUTES) --folder $(VENV)/fuzz

# The part of `make test-all` that keeps the pages true: the site, its links and examples, what pages say.
test-docs: $(STAMP) $(KERNELS) browser docs
	ICSCM_NEED_SITE=1 $(PYTEST) $(IN_PARALLEL) --thorough tests/docs

# Runs every example and tutorial, and builds the site; fails on a warning, a broken link, or a public name missing from
# the reference. All pages are rebuilt, examples only if they changed. The site is
# docs/_build/html/index.html.
docs: $(STAMP)
	rm -rf docs/_build/html docs/api/generated
	$(BIN)/sphinx-build -W --keep-going -q -E -j 2 -d docs/_build/doctrees docs docs/_build/html
	$(BIN)/python docs/check_site.py docs/_build/html

# The report and the site are tested in a real browser; without one these tests are skipped.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || { \
	  test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	  apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; \
	} || echo "No Chromium here: the tests in a browser will be skipped."

# Compares the GPU kernels with their NumPy twins; needs a GPU and CuPy.
test-gpu: $(STAMP)
	$(BIN)/python -m pip install --quiet --editable '.[cuda]'
	$(BIN)/python -m pytest tests/gpu

# All tests with the oldest supported versions of dependencies.
oldest: $(OLDEST)/installed
	$(OLDEST)/bin/python -m pytest $(IN_PARALLEL) --thorough

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/check_docstrings.py
	$(BIN)/python docs/check_numbers.py
	$(BIN)/codespell

# Runs the commands and programs on pages again, updates their output, and renders the report image.
.PHONY: screens
screens: $(STAMP) browser
	$(BIN)/python docs/write_which_estimator.py
	$(BIN)/python docs/write_front.py
	$(BIN)/python docs/write_benchmarks.py
	$(BIN)/python docs/write_screens.py

# Mutation tests: the share of planted bugs that tests detect. MUTANTS=all takes hours.
MUTANTS ?= 400
mutants: $(STAMP)
	$(BIN)/python -m pip install --quiet --editable '.[mutants]'
	$(BIN)/python tests/mutants.py $(MUTANTS)

# Fuzzing, each input in its own process, for minutes; a second run continues. See FUZZ=--help.
fuzz: $(STAMP)
	$(BIN)/python tests/fuzz $(FUZZ)

bench: $(STAMP)
	$(BIN)/python benchmarks/run.py

# All tables and figures of the paper, to paper/out/index.html: about 40 minutes on two cores. A run
# that was stopped resumes. ICSCM_DATA names the folder of the real data; see paper/README.md.
paper: $(STAMP)
	$(BIN)/python -m paper all

# The same with few repetitions on small samples, to paper/out/quick/index.html: two minutes.
paper-quick: $(STAMP)
	$(BIN)/python -m paper all --quick

# The first command stops an older Python with a message; pip's own would name none to use.
$(PACKAGE): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "icscm needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 ...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(STAMP): $(PACKAGE)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

# Compiled once, before the tests are spread over processes, each of which would compile the same.
$(KERNELS): $(STAMP) $(wildcard src/icscm/*/_kernels/*.py src/icscm/*/_kernels.py) src/icscm/compiling.py
	$(BIN)/python tests/support/compile_kernels.py
	touch $@

# Rebuilt whenever pyproject.toml changes, so that no version from older bounds remains.
$(OLDEST)/installed: pyproject.toml
	$(OLDEST_PYTHON) -m venv --clear $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet uv
	$(OLDEST)/bin/uv pip install --quiet --python $(OLDEST)/bin/python --resolution lowest-direct --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) $(OLDEST) .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .fuzz mutants build dist paper/out \
	  docs/_build docs/api/examples docs/api/generated docs/gallery docs/tutorials
