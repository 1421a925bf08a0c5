# The targets that the README names. Each works on a machine with only Python >= 3.11 and make.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
OUT ?= results
RELEASE_VENV ?= .venv-release
# What make release needs to test an installed wheel, and the folders that it tests.
TEST_TOOLS = "pytest>=8.2,<9.2" hypothesis pandas
RELEASE_TESTS = tests/core tests/strategies tests/simulation tests/schema
# The oldest versions that pyproject.toml declares: where they are installed, and what is tested with them.
OLDEST_VENV ?= .venv-oldest
OLDEST_EXTRAS = plots,logs,neural,server,postgres,telemetry,dask,data,report,gymnasium
OLDEST_TESTS = tests/core tests/schema tests/bandit tests/server tests/cli tests/evaluation tests/integrations tests/models
# How long the simulated year of make soak may take; its other tests come after that.
SUBMAX_SOAK_MINUTES ?= 30
# The simulated year, and the tests that take more examples if SUBMAX_SOAK is set.
SOAK_TESTS = tests/soak tests/bandit tests/server tests/core/test_summary.py tests/evaluation/reading/test_log_property.py
# The tests start many processes: each would compile the library anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: reproduce quick reproduce-networks test test-fast test-oldest sentences golden golden-check soak lint bench docs site release clean

reproduce: $(VENV)/.installed
	$(BIN)/submax reproduce illustration bernoulli --out $(OUT)

quick: $(VENV)/.installed-neural
	$(BIN)/submax reproduce contextual combinatorial --quick --out $(OUT)-quick

reproduce-networks: $(VENV)/.installed-neural
	$(BIN)/submax reproduce contextual contextual-wide contextual-disjoint combinatorial ablations joint-ablations rates --out $(OUT)

# Four workers for two cores: tests of processes and servers wait most of their time.
test: $(VENV)/.installed-all
	$(BIN)/python -m pytest -n 4 --dist loadgroup

test-fast: $(VENV)/.installed-all
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m "not slow"

# Every dependency in the lowest version that is declared, and what these need in the newest: too low a minimum fails here.
test-oldest:
	$(PYTHON) -m venv --clear $(OLDEST_VENV)
	$(OLDEST_VENV)/bin/python -m pip install --quiet uv
	$(OLDEST_VENV)/bin/uv pip install --quiet --python $(OLDEST_VENV)/bin/python --resolution lowest-direct ".[$(OLDEST_EXTRAS)]"
	$(OLDEST_VENV)/bin/uv pip install --quiet --python $(OLDEST_VENV)/bin/python pytest-xdist jsonschema-rs $(TEST_TOOLS)
	PYTHONPATH=src $(OLDEST_VENV)/bin/python -m pytest -n 2 --dist loadgroup -m "not slow" -W default $(OLDEST_TESTS) \
	  --ignore tests/server/clients --ignore tests/server/examples --ignore tests/evaluation/page

soak: $(VENV)/.installed-all
	SUBMAX_SOAK=1 SUBMAX_SOAK_MINUTES=$(SUBMAX_SOAK_MINUTES) $(BIN)/python -m pytest $(SOAK_TESTS)
	SUBMAX_SOAK=1 $(BIN)/python -m pytest -m soak tests --ignore tests/soak --ignore tests/bandit --ignore tests/server

# Write anew what users read when something is wrong; review the difference.
sentences: $(VENV)/.installed-all
	PYTHONPATH=tests/support $(BIN)/python tests/sentences/test_sentences.py

# Freeze what the library decides, estimates and simulates, or compare with what is frozen. A change of form leaves it
# as it is; write it anew only if behaviour changes on purpose: make golden ONLY=adaptive
golden: $(VENV)/.installed-all
	PYTHONPATH=tests:tests/support $(BIN)/python benchmarks/golden/golden.py $(ONLY)

golden-check: $(VENV)/.installed-all
	PYTHONPATH=tests:tests/support SUBMAX_SOAK=1 $(BIN)/python -m pytest -p conftest benchmarks/golden/golden.py

lint: $(VENV)/.installed-all
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy & types=$$!; $(BIN)/lint-imports && wait $$types

bench: $(VENV)/.installed-all
	$(BIN)/python benchmarks/run.py

docs: $(VENV)/.installed-all
	$(BIN)/python -m docs.generators.reference
	$(BIN)/python clients/typescript/generate.py
	$(BIN)/python docs/generators/results.py $(wildcard $(OUT))

# The distributions are built and checked; the wheel is installed alone into an empty environment, where the first steps
# must succeed, and then with its extras, where the fast tests of some folders run against it instead of src.
release: $(VENV)/.installed-all
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python release/check_files.py dist
	$(PYTHON) -m venv --clear $(RELEASE_VENV)
	$(RELEASE_VENV)/bin/python -m pip install --quiet dist/*.whl
	$(RELEASE_VENV)/bin/python release/first_steps.py
	$(RELEASE_VENV)/bin/python -m pip install --quiet "$$(ls dist/*.whl)[plots,logs,server]" $(TEST_TOOLS)
	$(RELEASE_VENV)/bin/python -c 'import submax; assert "site-packages" in submax.__file__, submax.__file__'
	$(RELEASE_VENV)/bin/python -m pytest -p no:cacheprovider -m "not slow" $(RELEASE_TESTS)

# Open site/index.html, with or without a web server.
site: $(VENV)/.installed-all
	$(BIN)/python -m docs.generators.site site

clean:
	rm -rf $(VENV) .venv-bench $(RELEASE_VENV)

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "submax needs Python 3.11 or newer; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	touch $@

# The command that installs packages. It does not compile them, because most of their modules are never imported.
INSTALL ?= $(BIN)/python -m pip install --quiet --no-compile
$(VENV)/.installed: pyproject.toml | $(VENV)/.made
	$(INSTALL) --editable ".[plots,logs]"
	touch $@

$(VENV)/.installed-neural: pyproject.toml | $(VENV)/.made
	$(INSTALL) --editable ".[plots,logs,neural]"
	touch $@ $(VENV)/.installed

$(VENV)/.installed-all: pyproject.toml | $(VENV)/.made
	$(INSTALL) --editable ".[all]"
	@# What the tests import is compiled once here, and not by each of their processes.
	-@$(BIN)/python -m pytest --collect-only >/dev/null 2>&1
	touch $@ $(VENV)/.installed $(VENV)/.installed-neural
