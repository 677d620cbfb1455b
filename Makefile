# Two commands do everything on a fresh machine: `make demo` and `make test`.
SHELL := /bin/bash
PY := .venv/bin/python
# The cargo that set-up found or installed.
CARGO = PATH="$$(cat .venv/share/mica-cargo-bin):$$PATH" CARGO_TERM_PROGRESS_WHEN=never cargo
MANIFEST := --manifest-path native/Cargo.toml
PYTEST_ARGS ?=
WORKERS ?= 2
ROUNDS ?= 5
FUZZ_SECONDS ?= 3600
BATCHES ?= 20
ROWS ?= 200
SEED ?=
# Images set it to stay small. Here each of many processes would compile all its modules anew, since set-up installs
# without bytecode, and the first row of a new process would take three times as long.
unexport PYTHONDONTWRITEBYTECODE
# Code with coverage counters is a build of its own; only with a target do build scripts go without them.
HOST = $(shell PATH="$$(cat .venv/share/mica-cargo-bin):$$PATH" rustc -vV | sed -n 's/^host: //p')
GUIDED := $(or $(CARGO_TARGET_DIR),native/target)/guided

.PHONY: help setup setup-tests demo test test-rust test-python fuzz campaign azurite differential docs wheel lint fix lock bench bench-kernel clean

help:
	@echo "make demo    set up, then run the main job and print what it did"
	@echo "make test    set up, then run all tests"
	@echo "make campaign  the property tests at length: whole matrices against Spark, thousands of random cases, changes in turn with delta-spark, killed and racing writers; and make differential"
	@echo "make azurite  Azure's storage by npm, for the tests of object stores; make campaign runs it too"
	@echo "make fuzz    hostile bytes for FUZZ_SECONDS (an hour): values, columns, files, log lines, z85"
	@echo "make differential  random documents through mica and six other engines; writes docs/compatibility.md"
	@echo "make docs    the pages that are printed from tables (errors, properties), and the site of all pages"
	@echo "make wheel   the sdist and a wheel for this platform, or for TARGETS, with zig"
	@echo "make lint    ruff, mypy, import-linter, codespell, rustfmt, clippy"
	@echo "make bench   mica beside its peers (ROUNDS=3 for a quick look); bench-kernel: the kernel beside arrow-rs"
	@echo "make lock    write the requirement locks anew, and THIRD-PARTY.txt, the licences in a wheel"

setup:
	@scripts/setup.sh

demo: setup
	@.venv/bin/mica demo

test: test-rust test-python

setup-tests:
	@scripts/setup.sh --tests

# The crates are named, and the variable is the one that maturin sets, so that set-up's build of arrow is used again.
# The profile is release's with our overflows and assertions checked (native/Cargo.toml).
test-rust: setup-tests
	PYO3_BUILD_EXTENSION_MODULE=1 $(CARGO) test $(MANIFEST) --profile bench -p mica-brotli -p mica-kernel -p mica-native --tests -- --show-output

# Much of a test is waiting: for a JVM that starts, a commit, a planner. The tests of a file stay with one worker, and
# the files are taken in the order of tests/conftest.py, not of their numbers of tests.
test-python: setup-tests
	$(PY) -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

# The tests of which a run takes a part (`tests.support.dealt`, the marker slow), or fewer turns and examples, have all of
# them here.
campaign: differential azurite
	MICA_PROFILE=campaign $(PY) -m pytest tests/property tests/interop/test_object_store.py \
		$$(grep -rlE "dealt\(|CAMPAIGN|tests.killed|mark.slow" tests/cli tests/conformance tests/docs tests/interop tests/spark tests/unit --include "test_*.py") \
		$(PYTEST_ARGS)

# Azure's storage as a program; tests/interop/test_object_store.py takes it if it is there.
azurite:
	npm install --silent --no-audit --no-fund --no-package-lock --prefix .bench/azurite azurite@3.35.0

# A tenth of the time on what Python reads, the rest on the kernel, half of it guided by coverage. Memory is bounded:
# whatever is allocated out of proportion to its input ends the run. What a guided run found worth keeping is in $(CORPUS).
CORPUS := .bench/corpus
COVERED := -C passes=sancov-module -C llvm-args=-sanitizer-coverage-level=3 \
	-C llvm-args=-sanitizer-coverage-inline-8bit-counters
fuzz: setup-tests
	ulimit -v 16777216; MICA_FUZZ_SECONDS=$$(( $(FUZZ_SECONDS) * 45 / 100 )) PYO3_BUILD_EXTENSION_MODULE=1 $(CARGO) test \
		$(MANIFEST) --profile bench -p mica-kernel -p mica-native --test fuzz -- --ignored --nocapture
	RUSTFLAGS="$(COVERED)" $(CARGO) build --release --manifest-path native/fuzz/Cargo.toml \
		--target $(HOST) --target-dir $(GUIDED)
	ulimit -v 16777216; $(GUIDED)/$(HOST)/release/mica-fuzz $(CORPUS) $$(( $(FUZZ_SECONDS) * 45 / 100 ))
	ulimit -v 16777216; MICA_FUZZ_SECONDS=$$(( $(FUZZ_SECONDS) / 10 )) $(PY) -m pytest -o timeout=0 tests/property/test_hostile_texts.py

# Each document is right; what an engine reads otherwise, somebody wrote or read wrongly.
differential: setup-tests
	scripts/jars.sh differential
	PYO3_BUILD_EXTENSION_MODULE=1 $(CARGO) build $(MANIFEST) --release -p mica-kernel -p mica-native --example arrow_rs
	$(PY) -m tests.campaign --batches $(BATCHES) --rows $(ROWS) $(if $(SEED),--seed $(SEED))

# What a release publishes, in dist/; TARGETS="aarch64-unknown-linux-gnu aarch64-apple-darwin" for other platforms.
wheel: setup
	scripts/wheel.sh $(TARGETS)

docs: setup-tests
	$(PY) scripts/docs.py
	$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements-docs.lock
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --quiet
	@echo "the site: .bench/site/index.html"

lint: setup-tests
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/lint-imports
	.venv/bin/codespell README.md CHANGELOG.md CONTRIBUTING.md docs src native/brotli native/kernel native/memory native/py scripts benchmarks
	$(CARGO) fmt $(MANIFEST) --all --check
	PYO3_BUILD_EXTENSION_MODULE=1 $(CARGO) clippy $(MANIFEST) --release --workspace --all-targets -- -D warnings

fix: setup-tests
	.venv/bin/ruff check --fix
	.venv/bin/ruff format
	$(CARGO) fmt $(MANIFEST) --all

lock:
	scripts/lock.sh

bench: setup-tests
	$(PY) -m benchmarks --rounds $(ROUNDS) $(BENCH)

# One core, without Python: the kernel beside arrow-rs. A build of both crates, as for the tests, builds arrow once.
KERNEL_EVENTS := .bench/data/events-500000.ndjson
EXAMPLES := $(or $(CARGO_TARGET_DIR),native/target)/peers/examples
bench-kernel: setup-tests
	PYO3_BUILD_EXTENSION_MODULE=1 $(CARGO) build $(MANIFEST) --profile peers --examples -p mica-kernel -p mica-native
	mkdir -p .bench/data
	test -f $(KERNEL_EVENTS) || $(PY) -m mica.cli.events $(KERNEL_EVENTS) --events 500000
	$(PY) -m benchmarks.counted $(EXAMPLES)/values $(KERNEL_EVENTS)
	$(PY) -m benchmarks.counted $(EXAMPLES)/shred $(KERNEL_EVENTS)
	$(PY) -m benchmarks.counted $(EXAMPLES)/ingest $(KERNEL_EVENTS) .bench/data/events.parquet
	$(PY) -m benchmarks.counted $(EXAMPLES)/reconstruct .bench/data/events.parquet v

clean:
	rm -rf .venv .bench build native/target src/mica/_native*.so
