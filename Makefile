# Everything here does its own set-up first; `make` alone lists the targets.
BIN := .venv/bin
BRIEF ?=
# The files that take long come first, so that no core is idle at the end. Of the whole suite much is waiting, so that
# four processes keep two cores busy.
SIDE_BY_SIDE := --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help setup setup-to-run setup-tests demo test check check-code check-tests up down compose-smoke cluster-smoke proof chaos test-embed floors bench profile docs docs-serve dist audit screenshots readme-pictures

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Make .venv and install RabbitMQ; a second time it only looks
	@.ci/setup

setup-to-run: ## The same without the tools of development, unless they are there
	@.ci/setup --run

setup-tests: ## The same with PostgreSQL, Prometheus and a browser, which the whole suite needs besides
	@.ci/setup --tests

demo: setup-to-run ## A team of agents turns a brief into an article: make demo [BRIEF=file.md]
	@$(BIN)/mindbus demo $(if $(BRIEF),--brief "$(BRIEF)")

test: setup-tests ## The whole suite, on a real RabbitMQ, PostgreSQL and S3
	$(BIN)/pytest -m "not proof" --numprocesses 4 $(SIDE_BY_SIDE)

check: setup ## What must be right before a commit, in under two minutes
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=line check-code check-tests

check-code:
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry mindbus bus_schema
	$(BIN)/deptry agents config gateway language memory mindbus_fleet retrieval storage_service workers --config mindbus_fleet/pyproject.toml
	$(BIN)/mindbus schema export --check
	$(BIN)/zensical build --strict

check-tests:
	$(BIN)/pytest -m "not (proof or backends or rabbit or slow)" --numprocesses 2 $(SIDE_BY_SIDE) tests/unit tests/contract

screenshots: setup-tests ## A picture of every screen, empty, full, without the gateway: make screenshots [ONLY=fleet,chat]
	$(BIN)/python -m tests.browser.screenshots $(if $(ONLY),--only $(ONLY))

readme-pictures: setup-tests ## Make the pictures of README.md anew
	$(BIN)/python -m tests.browser.screenshots --readme

up: setup-to-run ## Start RabbitMQ and the workers in the background
	@$(BIN)/mindbus up -d

down: setup-to-run ## Stop them
	@$(BIN)/mindbus down

bench: setup-tests ## Every benchmark beside its peers, and their chart; an hour, or a quarter of it with SIZE=--bar
	$(BIN)/python -m benchmarks.suite $(SIZE)

# The name as a word of its own, too: make profile runs
NAME ?= $(word 2,$(MAKECMDGOALS))
profile: setup-tests ## Flame graph of all processes of a benchmark as SVG: make profile runs
	@mkdir -p .data/profiles
	$(BIN)/py-spy record --subprocesses --gil --format flamegraph --output .data/profiles/$(NAME).svg -- \
		$(BIN)/python -m benchmarks.$(NAME) $(or $(SIZE),--bar)
ifeq (profile,$(firstword $(MAKECMDGOALS)))
$(wordlist 2,9,$(MAKECMDGOALS)):
	@:
endif

docs: setup ## Build the documentation as a site in site/: make docs, or make docs-serve while you write
	@$(BIN)/zensical build --strict

docs-serve: setup
	@$(BIN)/zensical serve

audit: setup-tests ## Known vulnerabilities of what the lock names, where a database of them can be reached
	@$(BIN)/python -m tests.audit

dist: setup ## Build both wheels into dist/, without a network
	rm -rf dist
	$(BIN)/python -m uv build --quiet --wheel --no-build-isolation --out-dir dist .
	$(BIN)/python -m uv build --quiet --wheel --no-build-isolation --out-dir dist mindbus_fleet
	@ls dist/*.whl

compose-smoke: setup ## Bring the containers up, run an article through them, take them down
	$(BIN)/python -m tests.compose_smoke

cluster-smoke: setup ## Bring up two or three of everything, kill one of each kind of server under articles
	$(BIN)/python -m tests.cluster_smoke

proof: setup-tests ## The long form of the proofs
	$(BIN)/pytest -m proof
	$(BIN)/python -m tests.chaos

EMBED := .cache/embed
test-embed: setup-tests ## A model of sentence-transformers is loaded, in an environment of its own (5 GB of packages)
	$(BIN)/python -m uv venv --quiet --clear $(EMBED)
	$(BIN)/python -m uv pip install --quiet --python $(EMBED)/bin/python -e '.[mcp,otel,s3,sql]' -e './mindbus_fleet[embed]' \
		hypothesis pytest pytest-asyncio pytest-timeout pytest-xdist
	$(EMBED)/bin/python -m pytest tests/unit/memory/test_sentence_transformers.py

chaos: setup-tests ## Break everything under a fleet, whether anything is lost, doubled or stuck: make chaos [ONLY=faults] [DOZEN=1]
	$(BIN)/python -m tests.chaos --quick $(if $(ONLY),--only $(ONLY)) $(if $(DOZEN),--dozen)

floors: setup-tests ## Whether anything has become many times as slow, in a minute
	$(BIN)/python -m benchmarks.floors

