# The commands of the README. `make book` and `make test` need Python 3.11 to 3.13 and nothing else;
# `make pdf` needs Chromium or Chrome, too.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check
POOR := answer_files devices interventions respondents_nli store
QUICK := house pages scoring reliability validity items irt norms styles bias intervals trends figures
export PSYCHOMETRICS_STORE ?= $(CURDIR)/.store
export TOKENIZERS_PARALLELISM := false

.PHONY: book pdf test test-all quick poor clients bench lint elsewhere constraints clean

book: $(VENV)/installed  ## execute the notebooks and build the HTML
	$(BIN)/psychometrics book

pdf: $(VENV)/installed  ## print the built book into one file
	test -f book/_build/html/index.html || $(BIN)/psychometrics book
	$(BIN)/psychometrics pdf --output book/_build/book.pdf

test: $(VENV)/installed  ## run the linter, the type checker and the tests of the instrument, in five to seven minutes
	$(call checked,-m "not all")

test-all: $(VENV)/installed  ## run the linter, the type checker and all tests
	$(call checked,)

# Types are checked while the tests run: on one core, in a minute and a half.
define checked
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m mypy > $(VENV)/types.txt & types=$$!; \
		OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadgroup $(1); tests=$$?; \
		wait $$types; types=$$?; cat $(VENV)/types.txt; test $$tests = 0 -a $$types = 0
endef

quick: $(VENV)/installed  ## run the linter, the tests of methods, and the places of a chapter, in a minute
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 2 --dist loadgroup -m "not all" $(addprefix tests/test_,$(addsuffix .py,$(QUICK)))

# What is hidden, and how, is the table of tests/poverty/__init__.py. Only the tests that could care.
poor: $(VENV)/installed  ## run tests as on a machine with AVX2 alone, one core, no /dev/shm, home, UTF-8
	$(BIN)/python -m tests.poverty -n 2 --dist loadgroup tests/benchmarks $(addprefix tests/test_,$(addsuffix .py,$(POOR)))

clients: $(VENV)/installed  ## ask null respondents through the clients of other tools, installed in two minutes
	$(BIN)/python -m tests.clients

bench: $(VENV)/installed  ## measure anew what the appendix of benchmarks shows, and print it
	$(BIN)/python -m tests.benchmarks

lint: $(VENV)/installed  ## mend what the linter and formatter can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

elsewhere: $(VENV)/installed  ## execute the chapters as other processors would, and compare every printed cell
	$(RECIPES).elsewhere

# Versions stay unless UPGRADE names them. PyTorch's builds for the CPU (torch==...+cpu) are not on PyPI: when
# torch is upgraded, add their hashes by hand from PyTorch's own index; uv keeps them while the version stays.
constraints:  ## renew constraints.txt with uv (UPGRADE='-P torch', or --upgrade for all)
	uv pip compile --quiet --universal --generate-hashes --no-annotate --custom-compile-command 'make constraints' \
		--extra answers --extra book --extra onnx --extra test --group install pyproject.toml --output-file constraints.txt $(UPGRADE)

clean:  ## remove all that was made here, the answers too
	rm -rf $(VENV) .store runs book/_build book/chapters book/execution.md book/verdicts.md book/_static/profile-example.html

# From 26.2 on, pip verifies hashes of constraints although a project's folder has none. A new environment has
# an older pip, which verifies the newer one by its lines in constraints.txt. torch is fetched first and then
# verified: given hashes, pip would prefer the build with 4 GB for GPUs, whose hash PyPI tells, to a folder's own.
# Compiled on all cores, where pip compiles the 27,000 files on one (some are templates, no Python).
$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(None if (3, 11) <= sys.version_info < (3, 14) else "Python 3.11 to 3.13 is needed: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	sed -n '/^pip==/,/[^\\]$$/p' constraints.txt | $(PIP) --require-hashes -r /dev/stdin
	$(BIN)/python -m pip download --quiet --no-deps --dest $(VENV)/torch $$(sed -n 's/^\(torch==[^ ]*\).*/\1/p' constraints.txt)
	sed -n '/^torch==/,/[^\\]$$/p' constraints.txt | $(PIP) --no-deps --no-index --find-links $(VENV)/torch --require-hashes -r /dev/stdin
	rm -r $(VENV)/torch
	$(PIP) --no-require-hashes -c constraints.txt --build-constraint constraints.txt -e '.[answers,book,test]'
	$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true
	$(BIN)/psychometrics fetch-model
	touch $@

include data/Makefile
