# `make help` lists the targets. Nothing but Python 3.11+ and make needs to be there beforehand.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Settings for a tool that reads them but speaks to no server.
NOWHERE := PILOTAGE_SECRET_KEY=none DATABASE_URL=postgresql://nowhere/none REDIS_URL=redis://nowhere

# What `make lint` runs at once: the longest begins first.
CHECKS := types ruff format layers migrations reasons advisories

.DEFAULT_GOAL := help
.PHONY: help demo up setup client test test-fast test-elements lint $(CHECKS:%=lint-%) lock clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 15

demo: $(VENV)/.production ## Start the portal and run the example production; ONCE=1 ends with it
	@exec $(BIN)/python manage.py demo $(if $(filter 1,$(ONCE)),--once)

up: $(VENV)/.production ## Start the portal without the example
	@exec $(BIN)/python manage.py up

setup: $(VENV)/.development ## Prepare .venv for development and benchmarks

client: | $(BIN)/python ## Make the client for other hosts: client/pilotage.pyz, and a wheel beside it
	@$(BIN)/python client/make_zipapp.py

# Three at once on two cores: some wait for processes and batch systems.
test: $(VENV)/.development ## Run the tests (installs a browser if there is none)
	@browser=$$(.ci/browser $(BIN)) && PILOTAGE_BROWSER="$$browser" \
		$(BIN)/python -m pytest -n 3 -m "not apart" $(ARGS)

test-fast: $(VENV)/.development ## Run those that need no browser, process, batch system, nor long: 3 minutes at most
	@$(BIN)/python -m pytest \
		-m "not browser and not process and not batch and not scenario and not slow and not apart" $(ARGS)

# With ARGS one of the two may have nothing to run, which pytest tells by 5.
test-elements: $(VENV)/.development ## Run those that wait for minutes and must be served at once: HTCondor, ARC, all breaks
	@$(BIN)/python -m pytest -n 0 -m "apart and scenario" tests/scenarios $(ARGS) \
		|| $(if $(ARGS),[ $$? = 5 ],false)
	@$(BIN)/python -m pytest --dist loadfile -m "apart and not scenario" tests/wms/elements $(ARGS) \
		|| $(if $(ARGS),[ $$? = 5 ],false)

lint: $(VENV)/.development ## Check format, style, types, layers, migrations, reasons, packages for known faults
	@$(MAKE) --no-print-directory -j2 -k -O $(CHECKS:%=lint-%)

lint-types:
	$(NOWHERE) $(BIN)/mypy
lint-ruff:
	$(BIN)/ruff check .
lint-format:
	$(BIN)/ruff format --check .
lint-layers:
	$(BIN)/lint-imports
lint-migrations:
	$(BIN)/python -m portal.embedded.temporary $(BIN)/python manage.py makemigrations --check --dry-run
	$(NOWHERE) $(BIN)/python .ci/check_migrations.py
lint-reasons:
	$(BIN)/python .ci/check_reasons.py
lint-advisories:
	$(BIN)/python .ci/check_advisories.py

lock: $(VENV)/.development ## Renew the requirements files from pyproject.toml (needs uv)
	@for list in "pyproject.toml -o requirements.txt" \
		"pyproject.toml --group dev -c requirements.txt -o requirements-dev.txt" \
		"--group installer -o .ci/pip.txt"; do \
		uv pip compile --no-config --universal --python-version 3.11 --generate-hashes \
			--no-emit-index-url --no-header --quiet $$list || exit 1; \
	done

clean: ## Remove .venv, all caches, and var/ with all its data
	@if [ -e var/run/up.lock ] && ! flock -n var/run/up.lock true; then \
		echo "A portal runs on var/: stop it first."; exit 1; fi
	rm -rf $(VENV) var .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache test-results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment is made once, and again when the locked requirements change.
$(BIN)/python:
	@.ci/make-venv "$(PYTHON)" "$(VENV)"

$(VENV)/.production: requirements.txt | $(BIN)/python
	@echo "Installing the locked packages into $(VENV) ..."
	@$(BIN)/python .ci/install requirements.txt
	@touch $@

$(VENV)/.development: requirements-dev.txt $(VENV)/.production
	@$(BIN)/python .ci/install requirements-dev.txt --no-compile
	@touch $@
