# The words of the README. Each works on a machine with only Python >= 3.11 and make.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
OUT ?= results
# How long the simulated year of make soak may take; its other tests come after that.
SUBMAX_SOAK_MINUTES ?= 30
# The tests start many processes: each would compile the library anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: reproduce quick reproduce-networks test test-fast soak lint bench docs clean

reproduce: $(VENV)/.installed
	$(BIN)/submax reproduce illustration bernoulli --out $(OUT)

quick: $(VENV)/.installed-neural
	$(BIN)/submax reproduce contextual combinatorial --quick --out $(OUT)-quick

reproduce-networks: $(VENV)/.installed-neural
	$(BIN)/submax reproduce contextual contextual-wide combinatorial ablations joint-ablations --out $(OUT)

# Three workers for two cores: tests of processes and servers wait most of their time.
test: $(VENV)/.installed-all
	$(BIN)/python -m pytest -n 3 --dist loadgroup

test-fast: $(VENV)/.installed-all
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m "not slow"

soak: $(VENV)/.installed-all
	SUBMAX_SOAK=1 SUBMAX_SOAK_MINUTES=$(SUBMAX_SOAK_MINUTES) $(BIN)/python -m pytest tests/soak tests/live tests/server

lint: $(VENV)/.installed-all
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy & types=$$!; $(BIN)/lint-imports && wait $$types

bench: $(VENV)/.installed-neural
	$(BIN)/python benchmarks/run.py

docs: $(VENV)/.installed-all
	$(BIN)/python docs/generators/cli_page.py
	$(BIN)/python docs/generators/options_table.py
	$(BIN)/python docs/generators/choice_page.py
	$(BIN)/python clients/typescript/generate.py
	$(BIN)/python docs/generators/tuning_page.py
	$(BIN)/python docs/generators/growth_page.py
	$(BIN)/python docs/generators/scale_page.py
	$(BIN)/python docs/generators/rerun_page.py
	if [ -d $(OUT) ]; then for page in report beyond bakeoff rivals; do \
	  $(BIN)/python docs/generators/$${page}_page.py $(OUT) || exit 1; done; fi

clean:
	rm -rf $(VENV) .venv-bench

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "submax needs Python 3.11 or newer; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	touch $@

# Packages are compiled when they are first imported: most of their modules never are.
$(VENV)/.installed: pyproject.toml | $(VENV)/.made
	$(BIN)/python -m pip install --quiet --no-compile --editable .
	touch $@

$(VENV)/.installed-neural: pyproject.toml | $(VENV)/.made
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[neural]"
	touch $@ $(VENV)/.installed

$(VENV)/.installed-all: pyproject.toml | $(VENV)/.made
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[all]"
	touch $@ $(VENV)/.installed $(VENV)/.installed-neural
