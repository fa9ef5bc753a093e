# Commands of users; their logic is in envs/*.sh and the Snakefile.

PYTHON ?= python3
CORES ?= all
SCALE ?=
CONFIG ?=
ARGS ?=
N ?= 50
MIRROR ?= mirror

# Recipes read CONFIG from the environment, so that quotes in it survive.
export PYTHON CONFIG CORES N

# A misspelt variable must not start something else.
VARIABLES = ARGS CONFIG CORES MIRROR N PYTHON SCALE
GIVEN := $(foreach name,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $(name)))),$(name)))
ifneq ($(filter-out $(VARIABLES) MAKEFLAGS MAKEOVERRIDES,$(GIVEN)),)
$(error raretok: $(shell sh envs/unknown_variable.sh $(firstword $(filter-out $(VARIABLES),$(GIVEN))) $(VARIABLES)))
endif

.DEFAULT_GOAL := report
# The scale whose results are recorded, and rendered by `make recorded`.
RECORDED_SCALE = $(or $(SCALE),small)

PYTEST = PATH="$(CURDIR)/.venv/bin:$$PATH" OMP_NUM_THREADS=1 .venv/bin/python -m pytest

.PHONY: report recorded finished record record-page accept slurm fetch test test-workflow test-slow torture test-slurm lint docs crate clean help \
	environment environment-test environment-report without-config cores attacks

report: cores environment ## reproduce the papers and print where the report is (the default)
	@sh envs/run.sh "$(if $(SCALE),scale=$(SCALE)) $$CONFIG" --cores $(CORES) $(ARGS)

slurm: environment ## reproduce the papers on a cluster with SLURM, from its login node
	@sh envs/run.sh "$(if $(SCALE),scale=$(SCALE)) $$CONFIG" --workflow-profile slurm $(ARGS)

recorded: cores environment-report ## render the report of results/recorded/SCALE (default small), without training or torch
	@sh envs/run.sh "scale=$(RECORDED_SCALE) recorded=true $$CONFIG" --cores $(CORES) $(ARGS)

finished: cores environment-report ## render the report of the finished runs of SCALE, even while others are running
	@sh envs/run.sh "$(if $(SCALE),scale=$(SCALE)) finished=true $$CONFIG" --cores $(CORES) $(ARGS)

record: without-config environment ## copy the results that the report of SCALE (default small) needs to results/recorded/SCALE
	@.venv/bin/python -m rarepapers record --results results/$(RECORDED_SCALE) --output results/recorded/$(RECORDED_SCALE)

accept: environment ## accept finished results of SCALE from another machine, if data, settings and code are the same
	@.venv/bin/python -m rarepapers accept $(if $(SCALE),--scale $(SCALE)) $(if $(CONFIG),--config $(CONFIG)) $(ARGS)

fetch: environment ## download the files that SCALE needs to the folder MIRROR, for machines without network
	@.venv/bin/python -m rarepapers fetch $(if $(SCALE),--scale $(SCALE)) $(if $(CONFIG),--config $(CONFIG)) --mirror "$(MIRROR)" $(ARGS)

test: environment-test ## run the fast tests
	@$(PYTEST) -m "not workflow and not slow and not slurm" -n auto --dist loadfile --no-loadscope-reorder $(ARGS)

test-workflow: environment-test ## run the tests that start Snakemake
	@$(PYTEST) -m "workflow and not slow and not slurm" -n auto --dist loadfile $(ARGS)

test-slow: environment-test ## run the slow tests
	@$(PYTEST) -m "slow and not slurm" -n auto --dist loadfile --timeout 1800 $(ARGS)

torture: attacks environment-test ## train and evaluate a small run under N random kills and other attacks (default 50)
	@PATH="$(CURDIR)/.venv/bin:$$PATH" OMP_NUM_THREADS=1 PYTHONPATH=. .venv/bin/python -m tests.survival.torture --attacks $(N) $(ARGS)

test-slurm: environment-test ## run the tests that need SLURM, on one that runs here or is started for them
	@$(PYTEST) -m slurm -rs -n 3 --dist worksteal tests/workflow/test_slurm.py $(ARGS)

lint: environment-test ## check the style of Python and Snakemake files
	.venv/bin/python -m ruff check .
	.venv/bin/python -m ruff format --check .
	@PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/python -m snakefmt --check Snakefile workflow/rules
	@PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/python -m snakemake --lint

record-page: environment ## render the report of results/recorded/SCALE (default small) into it, fill README.md and docs/, stage all
	@$(MAKE) recorded
	@sh envs/publish.sh $(RECORDED_SCALE)
	@sh envs/fill_pages.sh $(RECORDED_SCALE)
	@$(MAKE) recorded # the report's first page shows the README
	@sh envs/publish.sh $(RECORDED_SCALE)
	@git add README.md docs/*.md results/recorded/$(RECORDED_SCALE) && du -ch results/recorded/$(RECORDED_SCALE)/report/*

docs: environment-test ## build the API reference of the losses and metrics in docs-site/
	@.venv/bin/python -m pdoc raretok --docformat google --no-show-source --output-directory docs-site && echo "docs-site/index.html"

crate: without-config environment ## pack the results of SCALE (default small) with their workflow, as a Workflow Run RO-Crate
	@.venv/bin/python envs/crate.py results/$(RECORDED_SCALE) raretok-$(RECORDED_SCALE).zip

clean: without-config ## remove the results of SCALE (or of config's scale) and caches; keep .venv and downloads
	@sh envs/clean.sh "$(SCALE)"

help: ## show this help
	@echo "make [TARGET] [VARIABLE=VALUE ...]"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' Makefile | while IFS='|' read -r name what; do printf '%-17s%s\n' "$$name" "$$what"; done
	@echo "Variables: SCALE=smoke|small|small_gpu|paper, CONFIG='seeds=3 data_mirror=FOLDER', CORES=all,"
	@echo "           N=50, PYTHON=python3, MIRROR=folder, ARGS=further arguments of Snakemake, pytest or raretok fetch (--dry-run)"

environment: ## install the pinned packages into .venv
	@sh envs/setup.sh

environment-test:
	@sh envs/setup.sh test

environment-report:
	@sh envs/setup.sh report

cores:
	@expr "$$CORES" : '[1-9][0-9]*$$' >/dev/null || [ "$$CORES" = all ] || { echo "raretok: CORES is '$$CORES'; it can be all, or a number from 1 on" >&2; exit 2; }

attacks:
	@expr "$$N" : '[1-9][0-9]*$$' >/dev/null || { echo "raretok: N is '$$N'; it must be a number of attacks, from 1 on" >&2; exit 2; }

without-config:
	@[ -z "$$CONFIG" ] || { echo "raretok: CONFIG has no effect on $(firstword $(MAKECMDGOALS)); give SCALE alone" >&2; exit 2; }
