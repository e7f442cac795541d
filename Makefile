# The commands of the README. `make book` and `make test` need Python 3.11 to 3.13 and nothing else;
# `make pdf` needs Chromium or Chrome, too.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RECIPES := PYTHONPATH=data $(BIN)/python -m recipes
PIP := $(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check
POOR := answer_files devices interventions respondents_nli store
QUICK := house scoring reliability validity items irt norms styles bias intervals trends figures
export PSYCHOMETRICS_STORE ?= $(CURDIR)/.store
export TOKENIZERS_PARALLELISM := false

.PHONY: book pdf test quick poor faults bench lint population bases data elsewhere mutants sums tables release picture course bank constraints clean

book: $(VENV)/installed  ## execute the notebooks and build the HTML
	$(BIN)/psychometrics book

pdf: $(VENV)/installed  ## print the built book into one file
	test -f book/_build/html/index.html || $(BIN)/psychometrics book
	$(BIN)/psychometrics pdf --output book/_build/book.pdf

test: $(VENV)/installed  ## run the linter, the type checker and the tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m mypy
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadgroup

quick: $(VENV)/installed  ## run the linter and the tests of methods, in a minute
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 2 --dist loadgroup $(addprefix tests/test_,$(addsuffix .py,$(QUICK)))

# What is hidden, and how, is the table of tests/poverty/__init__.py. Only the tests that could care.
poor: $(VENV)/installed  ## run tests as on a machine with AVX2 alone, one core, no /dev/shm, home, UTF-8
	$(BIN)/python -m tests.poverty -n 2 --dist loadgroup tests/benchmarks $(addprefix tests/test_,$(addsuffix .py,$(POOR)))

faults: $(VENV)/installed  ## kill runs and drivers that share a store, twenty times each
	OMP_NUM_THREADS=1 PSYCHOMETRICS_KILLS=20 $(BIN)/python -m pytest tests/faults

bench: $(VENV)/installed  ## measure anew what the appendix of benchmarks shows, and print it
	$(BIN)/python -m tests.benchmarks

lint: $(VENV)/installed  ## mend what the linter and formatter can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

population: $(VENV)/installed  ## train the embedded respondents and heads that are not there yet
	$(RECIPES).population
	$(RECIPES).heads
	$(RECIPES).datasheets

# Resumes where it was stopped; half a day of one core for each of the larger bases (data/plans/six-bases.yml).
# Each member's rows go into data/bases/members-*.csv: commit them.
bases: $(VENV)/installed  ## train and ask the respondents of six bases, then compute what the plan says
	OMP_NUM_THREADS=1 $(RECIPES).six_bases
	$(RECIPES).six_bases analyse

# Each part resumes from the store and the caches where it was stopped. On two cores without matrix units the
# answers take 40 minutes, the null populations an hour, each of the studies half an hour to an hour.
data: $(VENV)/installed  ## make all shipped answers, nulls, kernels and studies anew (half a day); then make book tables
	rm -rf data/answers
	$(RECIPES).answers
	$(RECIPES).talk
	$(RECIPES).nulls
	$(RECIPES).null_populations
	$(RECIPES).adapted_bases
	$(RECIPES).kernels
	$(RECIPES).explorers
	$(RECIPES).profiles
	$(RECIPES).behaviour
	$(RECIPES).dose
	$(RECIPES).interventions
	$(RECIPES).improved
	$(MAKE) picture sums

elsewhere: $(VENV)/installed  ## execute the chapters as other processors would, and compare every printed cell
	$(RECIPES).elsewhere

mutants: $(VENV)/installed  ## change a measure, store or reader in 200 ways (NUMBER, SEED), and see that tests fail
	$(RECIPES).mutants --number $(or $(NUMBER),200) --seed $(or $(SEED),1)

sums:  ## keep the SHA-256 of shipped tables and weights, which are checked when they are read
	cd data && find * \( -name '*.parquet' -o -name '*.safetensors' \) -not -path 'answers/*' \
		| LC_ALL=C sort | xargs sha256sum > SHA256SUMS

course: $(VENV)/installed  ## write forty items for a class, with answers that no page has (SEED=7)
	$(RECIPES).course --seed $(or $(SEED),0)

bank: $(VENV)/installed  ## write the exercises as a question bank (Moodle XML, QTI), with solutions for teachers
	$(RECIPES).question_bank

tables: $(VENV)/installed  ## keep the tables of the built book, and print what moved
	$(RECIPES).tables

release: $(VENV)/installed  ## describe the release for archives, and list what only an owner can give
	$(RECIPES).metadata

picture: $(VENV)/installed  ## draw the README's picture anew
	$(RECIPES).picture

# Versions stay unless UPGRADE names them. PyTorch's builds for the CPU (torch==...+cpu) are not on PyPI: when
# torch is upgraded, add their hashes by hand from PyTorch's own index; uv keeps them while the version stays.
constraints:  ## renew constraints.txt with uv (UPGRADE='-P torch', or --upgrade for all)
	uv pip compile --quiet --universal --generate-hashes --no-annotate --custom-compile-command 'make constraints' \
		--extra answers --extra book --extra test --group install pyproject.toml --output-file constraints.txt $(UPGRADE)

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
