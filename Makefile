# Everything from a bare machine: `make demo`, `make test`. `make help` lists the rest.
# Each step leaves a stamp in the environment and runs again only when its inputs are newer.

SHELL := /bin/sh
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# Name another Python with make PYTHON=...; 3.11 or 3.12.
PYTHON ?= python3
OBJECT ?= box
# Of the object [kg]; empty: as the object has it. A mesh file needs it.
MASS ?=
OUTPUT ?= demo-output
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
PIP := python -m pip --quiet --disable-pip-version-check --no-input
# Two steps at a time: most of a set-up is one pip that waits for the network and unpacks, beside a compiler.
MAKEFLAGS += --jobs=2
# What is run here decides itself how much it does at once.
unexport MAKEFLAGS
# Numerical libraries with a thread a core slow each other down when tests or nodes run side by side.
export OMP_NUM_THREADS ?= 1
# For the two cores that the time limits are written for. A third worker saves a minute or two, and starves jobs of eight
# processes now and then until something that is watched over comes too late.
WORKERS ?= 2

PYTEST := $(BIN)/python -m pytest
LINT := $(BIN)/ruff check && $(BIN)/ruff format --check && $(BIN)/mypy && $(BIN)/hadolint Dockerfile
SITE := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

INTERFACES := $(shell find morphit_interfaces -type f -not -name '*.pyc')
# Samples are collected first and weights fitted then: no single call. Faults take half an hour: `make chaos`.
BENCHMARKS := $(filter-out benchmarks/grasp_weights.py benchmarks/chaos.py, $(wildcard benchmarks/*.py))
# Copied into the environment; the Python sources are used in place.
DATA_FILES := $(shell find launch config urdf rviz scripts resource -type f) package.xml
# What builds ROS packages: an environment of its own, as it needs older setuptools and empy than the rest.
COLCON := .colcon/venv

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(STAMPS)/system $(STAMPS)/package $(STAMPS)/kernels ## system packages and the Python environment in .venv

.PHONY: show
show: setup ## watch a table of seven objects being cleared while somebody walks by: make show SEED=3
	$(BIN)/morphit show --seed "$(or $(SEED),0)"

.PHONY: demo
demo: setup ## pick an object in simulation: make demo OBJECT=mug, make demo OBJECT=part.stl MASS=0.2
	$(BIN)/morphit demo --object "$(OBJECT)" $(if $(MASS),--mass "$(MASS)") --output "$(OUTPUT)"

.PHONY: test
# Lint and the documentation site are made beside the tests, which wait for nodes now and then; what they say comes last,
# if one of them fails. Whole jobs and times of reaction are tested with nothing beside them, from the files that have
# some: to collect all of them once more takes twenty seconds longer.
test: setup $(STAMPS)/bench $(STAMPS)/docs $(STAMPS)/system-test .colcon/build ## all checks and tests
	@{ $(LINT) && $(SITE); } > $(STAMPS)/lint.log 2>&1 & lint=$$!; \
	tests=0; $(PYTEST) -n $(WORKERS) --dist loadfile --durations=20 -m "not alone" || tests=1; \
	wait $$lint || { cat $(STAMPS)/lint.log; tests=1; }; \
	$(PYTEST) --durations=20 -m alone $$(grep -rl --include='*.py' 'mark\.alone' test) || tests=1; exit $$tests

.PHONY: test-fast
test-fast: setup $(STAMPS)/bench ## tests that need neither a ROS graph nor more than ten seconds
	$(PYTEST) -n $(WORKERS) --dist loadfile -m "not slow and not ros"

.PHONY: nightly
nightly: fuzz $(STAMPS)/system-test ## what takes long: a hundred thousand damaged inputs, late nodes whose topics come late, first answers
	MORPHIT_TEST_TOPIC_DELAY=0.7 MORPHIT_TEST_START_DELAY=1.5 $(PYTEST) -n $(WORKERS) --dist loadfile -m ros
	$(PYTEST) test/nightly
	$(BIN)/python benchmarks/first_answer.py

.PHONY: fuzz
fuzz: setup ## ten thousand damaged meshes and robots, a hundred thousand messages, files and formulas: none may crash a reader
	MORPHIT_MUTATIONS=1400 $(PYTEST) -n $(WORKERS) test/geometry/test_fuzz_mesh.py test/robot/test_fuzz_description.py
	MORPHIT_FUZZ_EXAMPLES=10000 $(PYTEST) -n $(WORKERS) test/fuzzing

.PHONY: lint
lint: setup $(STAMPS)/bench ## ruff, mypy and hadolint
	$(LINT)

.PHONY: docs
docs: $(STAMPS)/docs ## the documentation site in build/site; a warning is an error
	$(SITE)

.PHONY: bench
bench: setup $(STAMPS)/bench ## measure: one table a capability, JSON in OUTPUT
	@mkdir -p "$(OUTPUT)"
	@for file in $(BENCHMARKS); do \
	  echo "== $$file"; $(BIN)/python "$$file" --json "$(OUTPUT)/$$(basename "$$file" .py).json" || exit 1; \
	done

.PHONY: chaos
chaos: setup $(STAMPS)/bench ## faults put into a running pick, written to docs/faults.md; RESUME=1 goes on with a stopped run
	$(BIN)/python benchmarks/chaos.py --output "$(OUTPUT)/chaos" $(if $(RESUME),--resume) --page docs/faults.md --json "$(OUTPUT)/chaos.json"

.PHONY: lock
lock: setup $(STAMPS)/docs ## write constraints.txt from the present environment
	$(BIN)/python tools/lock.py > constraints.txt.new && mv constraints.txt.new constraints.txt

.PHONY: clean
clean: ## remove environments and everything built
	rm -rf $(VENV) .colcon build install log dist *.egg-info morphit_interfaces/build .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMPS)/environment: tools/find_python.sh
	@python=$$(tools/find_python.sh "$(PYTHON)" python3.12 python3.11) || exit 1; \
	tools/system_packages.sh "$$python" && \
	{ [ -x $(BIN)/python ] || echo "Making the environment in $(VENV) with $$python"; } && \
	{ $(BIN)/python -c 'import pip' 2>/dev/null || "$$python" -m venv --clear $(VENV); }
	@mkdir -p $(STAMPS) && touch $@

# Checked at every call, in a fraction of a second: libraries come and go without make noticing.
.PHONY: $(STAMPS)/system
$(STAMPS)/system: $(STAMPS)/environment
	@tools/system_packages.sh $(BIN)/python

.PHONY: $(STAMPS)/system-test
$(STAMPS)/system-test: $(STAMPS)/system
	@tools/system_packages.sh $(BIN)/python test

$(STAMPS)/requirements: requirements.txt requirements-dev.txt constraints.txt $(STAMPS)/environment
	@echo "Installing Python packages (several hundred megabytes the first time)"
	$(BIN)/$(PIP) install -r requirements.txt -r requirements-dev.txt -c constraints.txt
	@touch $@

# The build requirements of the message package; a venv rather than pip's own, as the test of colcon needs them too.
.colcon/tools: morphit_interfaces/pyproject.toml tools/build_requirements.py $(STAMPS)/environment
	@echo "Installing what builds ROS packages in $(COLCON)"
	@$(BIN)/python -c 'import venv; venv.create("$(COLCON)", with_pip=True)'
	@$(BIN)/python tools/build_requirements.py morphit_interfaces/pyproject.toml > .colcon/requirements.txt
	$(COLCON)/bin/$(PIP) install -r .colcon/requirements.txt
	@touch $@

.colcon/wheel: $(INTERFACES) .colcon/tools
	@echo "Building the message package"
	@rm -rf .colcon/wheels
	$(COLCON)/bin/$(PIP) wheel --no-deps --no-build-isolation --wheel-dir .colcon/wheels ./morphit_interfaces
	@touch $@

$(STAMPS)/interfaces: .colcon/wheel $(STAMPS)/requirements
	$(BIN)/$(PIP) install --no-deps --force-reinstall .colcon/wheels/*.whl
	@touch $@

# colcon itself, for the test of the ROS way to build.
.colcon/stamp: requirements-colcon.txt .colcon/wheel
	@echo "Installing colcon in $(COLCON)"
	$(COLCON)/bin/$(PIP) install -r requirements-colcon.txt
	@touch $@

# What the test of colcon builds and compiles longest: it compiles it again only where messages or tools have changed.
.colcon/build: $(INTERFACES) .colcon/stamp
	@echo "Building the workspace for the test of colcon"
	@$(BIN)/python test/packaging/colcon_workspace.py
	@touch $@

$(STAMPS)/package: setup.py setup.cfg morphit_ros/dependencies.py $(DATA_FILES) $(STAMPS)/interfaces
	$(BIN)/$(PIP) install --no-deps --no-build-isolation --editable .
	@# Nodes need not compile what is as it was (Python sees what is not), even where they are told to leave no files.
	$(BIN)/python -m compileall -q morphit_ros
	@touch $@

$(STAMPS)/docs: requirements-docs.txt constraints.txt $(STAMPS)/requirements
	$(BIN)/$(PIP) install -r requirements-docs.txt -c constraints.txt
	@touch $@

# So that no command or test waits for a compiler. Compiled kernels are kept by content: what has not changed is found.
# It needs no message package, and so runs beside the step that builds it.
$(STAMPS)/kernels: $(STAMPS)/requirements $(shell find morphit_ros -name '*.py')
	PYTHONPATH=. $(BIN)/python -m morphit_ros.cli compile
	@touch $@

# What measures, in use from its place: benchmarks and tests import it.
$(STAMPS)/bench: morphit_bench/pyproject.toml $(STAMPS)/package
	$(BIN)/$(PIP) install --no-deps --no-build-isolation --editable ./morphit_bench
	@touch $@
