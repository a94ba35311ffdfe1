# Rankfall from a fresh clone: `make run` (the benchmark) and `make test`. Both set up .venv first, once.
#
#   make run CONFIG=workflow/presets/smoke.yaml        another configuration
#   make run PROFILE=workflow/profiles/slurm           on a cluster
#   make run ARGS=-n                                   any further arguments for snakemake (here: only show what would run)
#   make test PYTHON=python3.12                        another interpreter for the environment

PYTHON ?= python3
CONFIG ?= config.yaml
PROFILE ?= workflow/profiles/default
ARGS ?=

BIN := .venv/bin
SNAKEMAKE = $(BIN)/python -m snakemake --configfile '$(CONFIG)' --workflow-profile '$(PROFILE)'
FOLDER = import sys; from rankfall.run.config.types import parse, read; print(parse(read(sys.argv[1])).results)

# The stamp's name holds what the environment is made of, so that `make` installs again when a pin changes or the
# checkout moves, and never otherwise.
STAMP := .venv/installed-$(shell (pwd; cat pyproject.toml engine/pyproject.toml envs/constraints.txt) | cksum | cut -d' ' -f1)

.PHONY: run report smoke test setup bench

run: $(STAMP)
	@[ -f '$(CONFIG)' ] || { echo "error: there is no configuration '$(CONFIG)': say make run CONFIG=..."; exit 1; }
	@$(BIN)/rankfall run --config '$(CONFIG)' --profile '$(PROFILE)' -- $(ARGS)

# All figures with their captions in one file, by Snakemake.
report: $(STAMP)
	@results=$$($(BIN)/python -c '$(FOLDER)' '$(CONFIG)') && $(SNAKEMAKE) --report "$$results/report.html" $(ARGS)

smoke:
	@$(MAKE) --no-print-directory run CONFIG=workflow/presets/smoke.yaml

test: $(STAMP)
	@$(BIN)/python -m pytest $(or $(ARGS),-n auto --maxprocesses 8 --dist loadfile)

bench: $(STAMP)
	@$(BIN)/python -m benchmarks $(ARGS)

setup: $(STAMP)

$(STAMP):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "error: Rankfall needs Python 3.11 or newer, and '$(PYTHON)' is not: choose one with 'make run PYTHON=python3.12'"; exit 1; }
	@echo "==> making .venv with $$($(PYTHON) --version) and the pins of envs/constraints.txt (once; some minutes)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c envs/constraints.txt torch==2.13.0 \
		-e engine -e '.[workflow,s3,models,hub,real,page,fast,watch,docs,dev]'
	@echo "==> compiling the fast engine (once for each version of its code; a minute)"
	@$(BIN)/python -c 'from thousandfold.runtime import prepare_all; prepare_all()' \
		|| echo "==> it does not compile here: say compute: {engine: plain}"
	@rm -f .venv/installed-*
	@touch $@
