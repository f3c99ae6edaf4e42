# `make up` runs a cluster, and `make test` tests the program; both install what they need into .venv. -qq: setuptools warns of editable installs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# The tests start hundreds of Python processes, each of which would compile the program anew if nothing kept its bytecode.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: up zookeeper check test lint style types quick unit conformance walk faults soak fuzz properties bench bench-pipeline clean

up: $(VENV)/.runtime
	@$(BIN)/minicontroller up --brokers 3 $(ARGS)

# The ZooKeeper that the tests use too; its jars come with pyspark.
ZOOKEEPER := ./build/zookeeper
zookeeper: $(VENV)/.dev java
	@mkdir -p $(ZOOKEEPER)
	@printf '%s\n' dataDir=$(ZOOKEEPER) clientPort=2181 clientPortAddress=127.0.0.1 admin.enableServer=false > $(ZOOKEEPER)/zoo.cfg
	@echo "ZooKeeper at 127.0.0.1:2181 keeps its data in $(ZOOKEEPER); Ctrl-C ends it"
	@exec java -Dorg.apache.logging.log4j.level=ERROR -Dzookeeper.jmx.log4j.disable=true -cp "$$($(BIN)/python -c 'from tests.support.zookeeper import class_path; print(class_path())')" \
	  org.apache.zookeeper.server.ZooKeeperServerMain $(ZOOKEEPER)/zoo.cfg

# Both end with the time and the processor time that they took.
MEASURED := $(BIN)/python -m tests.support.measured $(MAKE) --no-print-directory

test: $(VENV)/.dev java chromium promtool
	@$(MEASURED) style beside-types TESTS="java-classes unit"

# Whoever collects tests whose assertions nobody has compiled compiles them all; so one process does before four would at once.
build/compiled: | $(VENV)/.dev
	@mkdir -p build; $(BIN)/pytest -qq -n 0 --collect-only > /dev/null 2>&1; touch $@

# A quick check while you work: the linters, and the tests that start no large program and take little time.
check: $(VENV)/.dev
	@$(MEASURED) style beside-types TESTS=quick

# Makes targets of tests while mypy and import-linter run beside them; what those say comes last, and the call fails if either fails.
.PHONY: beside-types
beside-types:
	@mkdir -p build; $(MAKE) --no-print-directory types > build/types.log 2>&1 & types=$$!; \
	$(MAKE) --no-print-directory $(TESTS); tests=$$?; \
	wait $$types; types=$$?; cat build/types.log; exit $$((tests | types))

lint: style types

style: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev build/typing/minicontroller
	MYPYPATH=build/typing $(BIN)/mypy -p minicontroller.protocol -m minicontroller.clock -m minicontroller.text -m minicontroller.version -p minicontroller.store -p minicontroller.policies -p minicontroller.audit -p minicontroller.cluster -p minicontroller.process -p minicontroller.admin -p minicontroller.security -p minicontroller.network -p minicontroller.client -p minicontroller.controller -p minicontroller.records -p minicontroller.gateway -p minicontroller.cli -p minicontroller.pipeline
	MYPYPATH=build/typing $(BIN)/mypy tests benchmarks
	$(BIN)/lint-imports

quick: $(VENV)/.dev build/compiled
	$(BIN)/pytest -q -n 4 --dist loadgroup --no-loadscope-reorder -m "not slow" $(ARGS)

# The tests run in four processes, also on two processors, because most of them wait for others; those that share a large program (tests/conftest.py) run in one. `ARGS="... -n 0"` is one process for all.
unit: $(VENV)/.dev build/compiled
	$(BIN)/pytest -n 4 --dist loadgroup --no-loadscope-reorder --durations 10 $(ARGS)

# Asks a real Kafka anew (its jars come by Maven), puts everything to it and to ours, which makes the tables of
# docs/conformance.md, puts it to a real Kafka through a gateway, and compares ours with the recordings.
conformance: $(VENV)/.dev java
	@$(BIN)/python -m tests.conformance.record
	@$(BIN)/python -m tests.conformance.table
	@$(BIN)/python -m tests.conformance.behind_gateway
	@$(BIN)/pytest -q tests/conformance $(ARGS)

# Goes a random walk over all APIs, on a real Kafka and on ours, and fails with the steps in which they differ: `make walk SEED=7 STEPS=500`.
walk: $(VENV)/.dev java
	@$(BIN)/python -m tests.conformance.walk --seed $(or $(SEED),1) --steps $(or $(STEPS),300)

# Has every client do the same directly and through the gateway, before each kind of Kafka: `make gateway-clients ARGS="--kafka 4.4.0-kraft"`.
gateway-clients: $(VENV)/.dev java
	@$(BIN)/python -m tests.gateway.clients $(ARGS)

# Ten minutes of five clients that race at two gateways before three brokers: `make gateway-race ARGS="--gateways 1 --seconds 60"`.
gateway-race: $(VENV)/.dev java
	@$(BIN)/python -m tests.gateway.race $(ARGS)

# A minute, then ten planted bugs. An hour of the program alone: `make faults SECONDS=3600 SEED=any`; a history that was kept: `make faults REPLAY=build/faults/history-...ndjson`.
faults: $(VENV)/.dev java
	@$(BIN)/python -m tests.faults.detector $(if $(SEED),--seed "$(SEED)") $(if $(SECONDS)$(TIME),--seconds $(or $(SECONDS),$(TIME))) \
	  $(if $(REPLAY),--replay "$(REPLAY)") \
	  $(if $(PLANTED),--planted "$(PLANTED)") $(ARGS)

# Ten minutes of 500 connections, work, and deaths; `make soak SECONDS=60` says nothing of memory. It ends with 1 if something is lost or leaks.
soak: $(VENV)/.dev java
	@$(BIN)/python -m tests.soak $(if $(SEED),--seed "$(SEED)") $(if $(SECONDS)$(TIME),--seconds $(or $(SECONDS),$(TIME))) $(ARGS)

# Four minutes for all targets; `make fuzz SECONDS=3600`, one target: `ARGS="--target server"`, and with `ARGS=--distil` the corpus is written anew.
fuzz: $(VENV)/.dev
	@$(BIN)/pip install -qq --group fuzz
	@$(BIN)/python -m tests.fuzz $(if $(SECONDS),--seconds $(SECONDS)) $(ARGS)

# Tries thousands of examples of each property whose number is not fixed, where `make test` tries fifty.
properties: $(VENV)/.dev java
	$(BIN)/pytest -q -n 4 --dist loadgroup --no-loadscope-reorder -m hypothesis --hypothesis-profile deep $(ARGS)

bench: $(VENV)/.dev java
	$(BIN)/python -m benchmarks $(ARGS)

bench-pipeline: $(VENV)/.dev java
	$(BIN)/python -m benchmarks.pipeline $(ARGS)

# The tests run a real ZooKeeper; `make up` needs no Java.
.PHONY: java
java:
	@command -v java >/dev/null 2>&1 \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 \
	       && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq default-jre-headless; } \
	  || { echo "The tests run a real ZooKeeper: please install a Java runtime, 17 or newer (Debian: apt install default-jre-headless)." >&2; exit 1; }

# Spark and Kafka start for half of the processor time when their classes are in the cache; every Spark that starts before writes them when it ends, which takes 25 seconds.
.PHONY: java-classes
java-classes: $(VENV)/.dev java
	@$(BIN)/python -m tests.support.spark
	@$(BIN)/python -m tests.support.kafka_classes || echo "The classes of Kafka are not kept; its tests take longer."

# The page is tested in a real browser.
.PHONY: chromium
chromium:
	@command -v chromium >/dev/null 2>&1 \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 \
	       && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } \
	  || { echo "The page is tested in Chromium: please install it (Debian: apt install chromium)." >&2; exit 1; }

# The alerts are evaluated by Prometheus' own tool, which is kept where Kafka's jars are.
.PHONY: promtool
promtool: $(VENV)/.dev
	@$(BIN)/python -m tests.support.promtool

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 \
	       && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv; } \
	  || { echo "minicontroller needs Python 3.11 or newer with venv (Debian: apt install python3-venv)." >&2; exit 1; }
	@echo "Setting up $(VENV): once, half a minute"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade 'pip>=25.1'

$(VENV)/.runtime: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install -qq --editable .
	@touch $@

# --no-compile: the tests use a tenth of what is installed, and Python compiles that when it is imported first.
$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install -qq --no-compile --editable . --group dev
	@touch $@ $(VENV)/.runtime

clean:
	rm -rf $(VENV) build

# mypy follows no import hooks, so it finds the package by its name through this link.
build/typing/minicontroller:
	@mkdir -p build/typing && ln -sfn ../.. $@
