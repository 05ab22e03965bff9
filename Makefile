# Every target sets up what it needs and does nothing twice.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.installed
DOCS   := $(VENV)/.installed-docs
OLDEST := .venv-oldest
RAY    := .venv-ray
PEERS  := .venv-peers

.PHONY: help venv demo test test-all test-oldest test-ray fuzz sanitize lint format docs bench bench-tables clean

help:  ## what there is to make
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 13

venv: $(READY)  ## set up .venv with everything for development

$(READY): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $@

$(DOCS): $(READY)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[docs]'
	@touch $@

demo: $(READY)  ## train the default with and without positions on molecules that come with RDKit (minutes)
	$(BIN)/lspe reproduce nci --out runs/demo

test: $(READY)  ## run all tests (two at a time, one thread each)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

test-all: $(READY)  ## the tests that take many minutes, too
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m "" $(ARGS)

fuzz: $(READY)  ## attack everything that reads with 10,000 damaged inputs (minutes); make fuzz ARGS="--seed 1"
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz $(ARGS)

SANITIZE := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined
sanitize: $(READY)  ## the operators' tests with the sources built for address and undefined-behaviour sanitizers
	LSPE_CFLAGS="$(SANITIZE)" LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
	ASAN_OPTIONS=detect_leaks=0 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -p no:cacheprovider tests/ops tests/nn/test_pooled.py tests/training/test_one_pass.py $(ARGS)

$(OLDEST)/.installed: pyproject.toml constraints-oldest.txt
	@test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet -c constraints-oldest.txt -e '.[dev]'
	@touch $@

# What old versions say of what is deprecated in new ones is no error of ours.
test-oldest: $(OLDEST)/.installed  ## run the tests with the oldest versions pyproject.toml allows
	OMP_NUM_THREADS=1 $(OLDEST)/bin/python -m pytest -n 2 --dist worksteal -m "not browser and not rare" -o filterwarnings=default $(ARGS)

$(RAY)/.installed: pyproject.toml constraints.txt
	@test -x $(RAY)/bin/python || $(PYTHON) -m venv $(RAY)
	$(RAY)/bin/python -m pip install --quiet -c constraints.txt -e '.[dev,ray]' pyspark
	@touch $@

test-ray: $(RAY)/.installed  ## the tests with a Ray cluster of two processes, and with Spark where there is Java
	OMP_NUM_THREADS=1 $(RAY)/bin/python -m pytest tests/cluster tests/predict/test_own_jobs.py $(ARGS)

lint: $(READY)  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)  ## let ruff put the code in shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(DOCS)  ## build the documentation into site/, strictly
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir site

bench: $(READY)  ## measure, side by side in one run (needs ZINC and the small tables in the data root; half an hour)
	$(BIN)/python -m benchmarks.training
	$(BIN)/python -m benchmarks.encodings
	$(BIN)/python -m benchmarks.own_table
	$(BIN)/python -m benchmarks.data
	$(BIN)/python -m benchmarks.predict
	$(BIN)/python -m benchmarks.estimators

$(PEERS)/.installed: pyproject.toml constraints.txt
	@test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet -c constraints.txt -e '.[bench]'
	@touch $@

bench-tables: $(READY) $(PEERS)/.installed  ## our default against chemprop, forests and LightGBM on public tables (hours)
	$(BIN)/python -m benchmarks.tables --peers $(PEERS)/bin/python $(ARGS)

clean:  ## remove what the other targets made
	rm -rf $(VENV) $(OLDEST) $(RAY) $(PEERS) build dist site .pytest_cache .mypy_cache .ruff_cache .coverage
