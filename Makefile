# One word per task; `make help` lists them. Everything runs in one environment.
VENV = $(or $(MMGRADGUARD_VENV),.venv)
PYTHON ?= python3
RUN = $(VENV)/bin/python -m

# Two workers with one thread each: with more threads they would wait for each other.
PYTEST = OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(RUN) pytest -q -n 2

.PHONY: help setup demo test fast check bench accuracy
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -e 's/:.*## /\t/' | expand -t 10

setup: ## make or complete the environment (the first time 10 to 20 minutes)
	@$(PYTHON) tools/setup_env.py

demo: setup ## train a small DETR under guard with three planted faults, about 4 minutes
	$(VENV)/bin/python tools/run_demo.py

test: setup ## all tests, as .ci/run does
	$(PYTEST) tests

fast: setup ## the tests that take no more than a moment
	$(PYTEST) -m 'not slow' tests

check: setup ## format, lint, types, layers
	$(RUN) ruff format --check .
	$(RUN) ruff check .
	$(RUN) mypy
	$(RUN) pytest -q tests/test_layers.py

bench: setup ## what a step costs, and what reading a log costs; about 10 minutes
	$(VENV)/bin/python tests/bench/bench_step.py
	$(VENV)/bin/python tests/bench/bench_logs.py

accuracy: setup ## how often the log analyser is right, on 2,000 synthetic runs
	$(VENV)/bin/python tests/bench/bench_log_accuracy.py
