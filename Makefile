# Two commands set everything up on a machine with Python 3.11 or newer: `make run` and `make test`.
PYTHON ?= python3
unexport PYTHONDONTWRITEBYTECODE  # where it is set, every process compiles everything again
# Compiled kernels are kept between runs, apart for each state of the files that hold them.
KERNELS := $(shell cat $$(grep -rlE --include='*.py' 'njit|import kernel' src papers/src 2>/dev/null | sort) 2>/dev/null | sha256sum | cut -c1-16)
export NUMBA_CACHE_DIR ?= $(HOME)/.cache/tidegate/kernels-$(KERNELS)
# What the type checker knows is kept as well; it compares the content of every file.
export MYPY_CACHE_DIR ?= $(HOME)/.cache/tidegate/mypy
BIN := .venv/bin
RUN_STAMP := .venv/.ready-run
DEV_STAMP := .venv/.ready-dev
# What is killed, or runs in other processes, is not counted; those tests are left out here and run by `make test`, as are tests of time.
ELSEWHERE := $(addprefix --ignore-glob=*/test_,concurrency.py crash.py killed.py server_crash.py server_together.py input_time.py schema.py startup.py)
COVERED := $(addprefix tests/,policy accounting noise ledger risk operators tables answer release collect synthesize golden cli session service) $(ELSEWHERE)

# Processes that share the tests: more than cores, because a third of the tests' time is waiting. Long tests wait less.
CORES := $(shell nproc 2>/dev/null || echo 2)
WORKERS ?= $(shell echo $$(($(CORES) + 2)))
LONG_WORKERS ?= $(shell echo $$(($(CORES) + 1)))

# Tests write into memory where there is enough of it and programs can be run from it: on a disk, each commit waits for 6 ms.
SCRATCH := $(shell [ "$$(df --output=avail -m /dev/shm 2>/dev/null | tail -n 1)" -gt 4000 ] 2>/dev/null && ! grep -q ' /dev/shm .*noexec' /proc/mounts && echo /dev/shm || echo $${TMPDIR:-/tmp})

IN_SCRATCH = scratch=$$(mktemp -d $(SCRATCH)/tg.XXXXXX) && trap 'rm -rf "$$scratch"' EXIT && TMPDIR="$$scratch"

# Of `make mutants`: where faults are planted (in a part, or only in some of its files and folders), how many, and which.
PART ?= ledger
FILES ?=
SAMPLE ?= 20
SEED ?= 1

.DEFAULT_GOAL := help
.PHONY: help run test tests check kernels browser coverage mutants spark claims bench docs screenshots base lock clean

help:            ## list the commands
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

run: $(RUN_STAMP) ## set up and run the demo
	env -u NUMBA_CACHE_DIR $(BIN)/tidegate warm  # into the folder that the program uses outside of make
	env -u NUMBA_CACHE_DIR $(BIN)/tidegate demo

test: $(DEV_STAMP) browser ## set up, check the code, run the tests
	$(MAKE) --no-print-directory -j 2 check tests  # the type checker takes one core for half a minute

tests: $(DEV_STAMP) kernels
	$(IN_SCRATCH) $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "not long"

kernels: $(DEV_STAMP) ## compile what several processes would compile at the same time
	PYTHONPATH=tests $(BIN)/python -m kernels

check: $(DEV_STAMP) ## style and types, under a minute
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

browser:         ## chromium for the tests of the pages, from the system's packages
	@command -v chromium-headless-shell > /dev/null || (apt-get update -qq && apt-get install -y -qq chromium-headless-shell > /dev/null) \
		|| command -v chromium > /dev/null \
		|| echo "No chromium, and it cannot be installed here: the tests of the pages will say that they were skipped."

coverage: $(DEV_STAMP) ## branches that the tests reach, part by part; fails under 90%
	$(BIN)/python -m coverage run -m pytest -m "not long and not spark" $(COVERED)
	$(BIN)/python -m coverage json --quiet -o build/coverage.json
	$(BIN)/python tests/coverage_report.py build/coverage.json

mutants: $(DEV_STAMP) ## faults that no test notices: PART=ledger SAMPLE=20 SEED=1 takes up to 20 minutes
	PYTHONPATH=tests $(BIN)/python -m mutants $(PART) --sample $(SAMPLE) --seed $(SEED) --files $(FILES)

spark: $(DEV_STAMP) ## everything that runs on Spark
	$(BIN)/python -m pytest -m spark

claims: $(DEV_STAMP) ## the long statistical and crash tests, with fresh seeds
	$(IN_SCRATCH) TIDEGATE_SEED=fresh $(BIN)/python -m pytest -n $(LONG_WORKERS) --dist loadgroup -m "claim or long"

bench: $(DEV_STAMP) ## measure against peers and hand-written floors; writes docs/benchmarks.md
	$(BIN)/python -m benchmarks --report

docs: $(DEV_STAMP) ## build the documentation into build/docs; warnings are errors
	$(BIN)/python -m sphinx -W --keep-going -q -c docs -d build/doctrees . build/docs
	@echo "Built build/docs/index.html"

screenshots: $(DEV_STAMP) browser ## pictures of every console page, and what each loads, into docs
	PYTHONPATH=tests $(BIN)/python -m support.tour

base: .venv/bin/uv ## install the base without extras into build/base; show its size and try it
	rm -rf build/base && $(BIN)/uv venv --quiet build/base && mkdir -p build/base/trial
	VIRTUAL_ENV=build/base $(BIN)/uv pip install --quiet -c locks/run.txt .
	@echo "$$(VIRTUAL_ENV=build/base $(BIN)/uv pip list --quiet 2>/dev/null | tail -n +3 | wc -l) packages, $$(du -sm build/base/lib | cut -f1) MB"
	cd build/base/trial && printf 'age,sex\n34,female\n51,male\n28,female\n' > people.csv && ../bin/tidegate init people.csv && ../bin/tidegate --help > /dev/null && ../bin/tidegate ledger --help > /dev/null

lock: .venv/bin/uv ## resolve the dependencies anew
	printf "uv\nhatchling\neditables\n" | $(BIN)/uv pip compile - --universal --python-version 3.11 --generate-hashes --no-header -o locks/uv.txt
	$(BIN)/uv pip compile pyproject.toml papers/pyproject.toml --extra all --universal --python-version 3.11 --generate-hashes --no-header --no-emit-package tidegate -o locks/run.txt
	$(BIN)/uv pip compile pyproject.toml papers/pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --all-extras --group dev --no-emit-package tidegate -c locks/run.txt -o locks/dev.txt
	printf "openapi-python-client\n" | $(BIN)/uv pip compile - --universal --python-version 3.11 --generate-hashes --no-header -o locks/generator.txt

clean:           ## remove what was set up
	rm -rf .venv

.venv/bin/uv: locks/uv.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Tidegate needs Python 3.11 or newer: make run PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --require-hashes -r locks/uv.txt
	touch $@

$(RUN_STAMP): .venv/bin/uv locks/run.txt pyproject.toml papers/pyproject.toml
	VIRTUAL_ENV=.venv $(BIN)/uv pip install --quiet --compile-bytecode --require-hashes -r locks/run.txt
	VIRTUAL_ENV=.venv $(BIN)/uv pip install --quiet --no-deps --no-build-isolation -e . -e papers
	$(BIN)/python -m compileall -q src papers/src
	touch $@

$(DEV_STAMP): .venv/bin/uv locks/dev.txt pyproject.toml papers/pyproject.toml
	VIRTUAL_ENV=.venv $(BIN)/uv pip install --quiet --compile-bytecode --require-hashes -r locks/dev.txt
	VIRTUAL_ENV=.venv $(BIN)/uv pip install --quiet --no-deps --no-build-isolation -e . -e papers
	$(BIN)/python -m compileall -q src papers/src
	touch $(RUN_STAMP) $@
