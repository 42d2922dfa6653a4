# Every target sets up what it needs in .venv first, and does nothing there when nothing changed.
# Needs Python 3.11 or newer, make and git.  `make demo PYTHON=/path/to/python3.12` chooses the Python.

.DEFAULT_GOAL := help
.PHONY: help demo test lint format docs bench clean
.NOTPARALLEL:
unexport PYTHONPATH PYTHONHOME
# Tests start hundreds of processes, and each would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?=
BIN := .venv/bin

# Any Python will do to start with: scripts/bootstrap.py looks for one that is new enough.
STARTERS := $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11 python
STARTER = $(firstword $(foreach name,$(STARTERS),$(shell command -v $(name) 2>/dev/null)))
NO_PYTHON = echo "cannot set up: Python is missing; install Python 3.11 or newer" >&2; exit 1
setup = $(if $(STARTER),$(STARTER) scripts/bootstrap.py $(1) --python "$(PYTHON)",$(NO_PYTHON))

help:
	@echo "make demo     set up, train a small model under the profiler, show where its time went;"
	@echo "              in a terminal the page stays open until Ctrl-C, unless DEMO_ONCE=1"
	@echo "make test     set up, check style and types, run every test, and those that fail once more"
	@echo "make test-checked  the tests of reading, on loops that check every index, under sanitizers"
	@echo "make test-oldest   the tests of readers, web, command line and agents on the oldest allowed dependencies"
	@echo "make fuzz     break files on purpose until Ctrl-C; FUZZ=trace_json, perfetto, riegeli, nsight or flight_recorder for another format"
	@echo "make fuzz-nightly  damaged files through all readers and all tools; goes on where the last run ended"
	@echo "make lint     style and types only"
	@echo "make format   lay out the code"
	@echo "make docs     build the documentation into site/"
	@echo "make bench    measure speed and memory beside XProf and xprof-rs, into bench/RESULTS.md"
	@echo "make clean    remove .venv, caches and built files"

demo:
	@$(call setup,demo)
	@$(BIN)/stepscope demo

# Many tests record real programs, beside other tests that keep all cores busy.  What fails there runs a second time, one
# test after the other; only what fails twice fails.  The log ends with a list: what passes now is unstable, a fault to
# mend.
TEST_AGAIN = $(BIN)/python -m pytest --last-failed --last-failed-no-failures=none -n=0 -r pfE
# Types, and the tests of the page, take what the other tests leave of the processors, as these wait for a sixth of their
# time.  What they say stands behind the tests.
BESIDE = build/beside_the_tests.log
test:
	@$(call setup,test)
	@$(MAKE) --no-print-directory style
	@mkdir -p build
	@nice -n 10 $(MAKE) --no-print-directory types page-test >$(BESIDE) 2>&1 & beside=$$!; \
	$(BIN)/python -m pytest || { [ $$? -eq 1 ] && $(TEST_AGAIN); }; tests=$$?; \
	wait $$beside; beside=$$?; cat $(BESIDE); \
	[ $$beside -eq 0 ] || echo "make test: types or the tests of the page failed, see above" >&2; \
	exit $$((tests ? tests : beside))

.PHONY: test-checked
test-checked:
	@$(call setup,test)
	$(BIN)/python scripts/native.py test

# In an environment of its own; `make test` does not run it.
.PHONY: test-oldest
test-oldest:
	@$(call setup,test)
	$(BIN)/python scripts/oldest.py build/oldest

.PHONY: fuzz
FUZZ ?= xspace
fuzz:
	@$(call setup,fuzz)
	$(BIN)/python fuzz/run.py $(FUZZ)

# A million inputs take some hours on two cores; MINUTES ends a run early, and the next one goes on.
.PHONY: fuzz-nightly
FUZZ_STATE ?= build/fuzz/nightly
MINUTES ?= 480
fuzz-nightly:
	@$(call setup,test)
	$(BIN)/python fuzz/nightly.py $(FUZZ_STATE) --minutes $(MINUTES)

lint:
	@$(call setup,lint)
	@$(MAKE) --no-print-directory check

# Import directions are checked by tests/project/test_architecture.py.
.PHONY: check style types page-test
check: style types

style:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types:
	$(BIN)/mypy
	$(BIN)/python scripts/gen_types.py --check
	$(BIN)/python scripts/frontend.py check

page-test:
	$(BIN)/python scripts/frontend.py test

format:
	@$(call setup,lint)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python scripts/gen_types.py
	$(BIN)/python scripts/frontend.py format

docs:
	@$(call setup,docs)
	$(BIN)/python scripts/gen_docs.py
	$(BIN)/python -m mkdocs build --strict --quiet
	@echo "site/index.html"

bench:
	@$(call setup,bench)
	$(BIN)/python -m bench

clean:
	rm -rf .venv build dist site frontend/node_modules src/stepscope/web/static src/stepscope/kernels/.native-stamp .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src/stepscope/kernels \( -name '*.so' -o -name '*.pyd' \) -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
