# Builds, tests and shows everything, each language by its own tools. `make help` lists what there is to do.
#
# Needs cargo, Python 3.10 or newer with venv, and Node 20 or newer. All else is installed into .venv and node_modules,
# in the versions that constraints.txt and the lock files name. The native modules are built once, in release mode, and
# rebuilt only when a source changes.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:
# Two builds by cargo at once only wait for each other.
.NOTPARALLEL:

PYTHON ?= python3
VENV := .venv/bin
NODE_TOOLS := node_modules/.package-lock.json
MATURIN := env -u CONDA_PREFIX VIRTUAL_ENV="$(CURDIR)/.venv" $(VENV)/maturin

core := Cargo.toml Cargo.lock core/Cargo.toml $(shell find core/src -type f)
lab := lab/Cargo.toml $(shell find lab/src -type f)
python_native := $(core) $(lab) pyproject.toml bindings-python/Cargo.toml $(shell find bindings-python/src -type f)
node_native := $(core) bindings-node/Cargo.toml bindings-node/build.rs $(shell find bindings-node/src -type f)
node_package := $(wildcard tsconfig*.json) $(shell find bindings-node/lib -type f)
# A module that was removed by hand is built again, whatever its stamp says.
missing = $(if $(wildcard $(1)),,always)

# The servers that the tests start: `make` finds or installs them once.
with_servers = source build/servers;

.PHONY: help demo demo-redis test bench lint rust model python node cross readme notebooks docs examples browser deployments frameworks packages build notices clean tools always

help: ## show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: build ## attack two guarded login services, and compare what was admitted with what must be
	@$(VENV)/python demo/run.py

demo-redis: build build/servers ## the same over one Redis, which is stopped and started while the attack goes on
	@$(with_servers) $(VENV)/python demo/run.py --redis

test: lint rust model python node cross readme notebooks docs examples deployments browser frameworks packages demo demo-redis ## run every check and test of every language, then the demo

lint: build ## check the form and the types of all languages
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --features doorkeep/host,doorkeep/redis --locked -- -D warnings
	cargo clippy -p doorkeep --no-default-features --locked -- -D warnings
	cargo clippy -p doorkeep --features redis --locked -- -D warnings
	$(VENV)/python tests/arrows.py
	$(VENV)/ruff check .
	$(VENV)/ruff format --check .
	$(VENV)/mypy
	$(VENV)/mypy demo/*.py
	$(VENV)/mypy site/*.py
	$(VENV)/mypy examples/token_issuer/*.py
	$(VENV)/mypy packaging/*.py
	$(VENV)/python packaging/notices.py --check
	$(VENV)/python -m mypy.stubtest doorkeep._native --mypy-config-file pyproject.toml --allowlist bindings-python/stubtest-allowlist.txt
	npm run --silent lint

rust: build/servers ## test the core, in memory and over both servers, and the lab
	if cargo nextest --version >/dev/null 2>&1; \
		then $(with_servers) cargo nextest run -p doorkeep -p doorkeep-lab --features doorkeep/host,doorkeep/redis --locked; \
		else $(with_servers) cargo test -p doorkeep -p doorkeep-lab --features doorkeep/host,doorkeep/redis --tests --locked; fi
	cargo test --doc -p doorkeep -p doorkeep-lab --features doorkeep/host,doorkeep/redis --locked

model: .venv/installed ## replay the vectors in the model that stands beside the core
	$(VENV)/python tests/model/check.py
	$(VENV)/python tests/model/laws.py

python: build/python build/servers ## test the Python package
	$(with_servers) $(VENV)/python -m pytest -m "not wheel" tests/python
	$(with_servers) $(VENV)/python -m pytest tests/django

node: build/node build/servers ## test the Node package, its types included
	$(with_servers) npm test

cross: build build/servers ## test Python and Node processes on one server
	$(with_servers) $(VENV)/python -m pytest tests/cross

readme: build ## run the code of the README and of the guides, and check what they promise
	$(VENV)/python -m pytest tests/readme tests/promises

notebooks: build/python ## run the notebooks of the lab, and keep them with their figures in build/notebooks
	DOORKEEP_NOTEBOOKS=build/notebooks $(VENV)/python -m pytest tests/notebooks
	@touch build/notebooks/executed

build/notebooks/executed: build/python $(wildcard notebooks/*.ipynb bindings-python/python/doorkeep/lab/*.py)
	DOORKEEP_NOTEBOOKS=build/notebooks $(VENV)/python -m pytest tests/notebooks -k a_notebook_runs
	@touch $@

docs: build build/notebooks/executed ## build the site with the API of both packages into build/site; a broken link fails
	rm -rf build/docs-src
	npx typedoc --logLevel Warn --options site/typedoc.mjs
	NO_MKDOCS_2_WARNING=1 $(VENV)/mkdocs build --strict

examples: build build/servers ## start the examples and attack each over real HTTP
	$(with_servers) $(VENV)/python -m pytest tests/examples

deployments: build build/nginx ## start the programs of all pages with and without an address and behind nginx, and attack each
	source build/nginx; $(VENV)/python -m pytest tests/deployments

browser: build build/browser ## open the login page of the examples in Chromium
	source build/browser; node --test tests/browser/*.test.mjs

frameworks: build build/servers ## test the adapters with the oldest and the newest versions of their frameworks
	rm -rf build/frameworks/wheel
	$(MATURIN) build --quiet --release --locked --out build/frameworks/wheel
	$(with_servers) tests/frameworks/run.sh
	$(with_servers) tests/frameworks/node.sh

packages: build ## install the wheel and the npm tarball as a stranger would, and use them
	rm -rf build/wheel
	$(MATURIN) build --release --locked --out build/wheel
	DOORKEEP_WHEEL=$$(echo build/wheel/*.whl) $(VENV)/python -m pytest -m wheel
	npm run pack-test

bench: build/bench/python/installed build/bench/node/installed ## measure speed and memory, and print it beside the goals
	for part in rust rust-redis; do \
		cargo build --quiet --release --manifest-path benches/$$part/Cargo.toml --target-dir target/bench; done
	@$(VENV)/python benches/run.py

# What the benchmarks compare with, and doorkeep beside it, installed as a stranger would.
build/bench/python/installed: build/python benches/python/requirements.txt $(shell find benches/python/floor -type f)
	rm -rf build/bench/python build/bench/wheel
	$(MATURIN) build --quiet --release --locked --out build/bench/wheel
	$(PYTHON) -m venv build/bench/python
	build/bench/python/bin/python -m pip install --quiet --requirement benches/python/requirements.txt build/bench/wheel/*.whl
	cargo build --quiet --release --locked --manifest-path benches/python/floor/Cargo.toml --target-dir target/bench
	cp $$(find target/bench/release -maxdepth 1 -name 'libfloor.so' -o -name 'libfloor.dylib') \
		"$$(build/bench/python/bin/python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')/floor.abi3.so"
	@touch $@

build/bench/node/installed: build/node $(shell find benches/node -name '*.json' -o -path '*/noop/*' -type f)
	rm -rf build/bench/node build/bench/npm
	mkdir -p build/bench/node build/bench/npm
	cp benches/node/package.json benches/node/package-lock.json build/bench/node
	npm ci --prefix build/bench/node --no-audit --no-fund --loglevel=error
	npm pack --silent --pack-destination build/bench/npm
	npm install --prefix build/bench/node --no-save --no-package-lock --no-audit --no-fund --loglevel=error "$(CURDIR)"/build/bench/npm/*.tgz
	cargo build --quiet --release --locked --manifest-path benches/node/noop/Cargo.toml --target-dir target/bench
	cp $$(find target/bench/release -maxdepth 1 -name 'libnoop.so' -o -name 'libnoop.dylib') build/bench/node/noop.node
	@touch $@

build: build/python build/node ## build both native modules and install them here

notices: .venv/installed ## write THIRD-PARTY-NOTICES anew, after a change of Cargo.lock
	$(VENV)/python packaging/notices.py

clean: ## remove what was built, but not the tools
	rm -rf build target bindings-node/dist bindings-python/python/doorkeep/_native*.so

build/python: $(python_native) .venv/installed $(call missing,bindings-python/python/doorkeep/_native*.so)
	PIP_QUIET=1 $(MATURIN) develop --release --locked
	@mkdir -p $(@D) && touch $@

build/node: build/node-native $(node_package)
	npm run --silent build:ts
	@touch $@

build/node-native: $(node_native) $(NODE_TOOLS) $(call missing,bindings-node/dist/*.node)
	npm run --silent build:native
	@mkdir -p $(@D) && touch $@

build/servers: .venv/installed tests/support/servers.sh
	@mkdir -p $(@D)
	tests/support/servers.sh > $@.found
	@mv $@.found $@

build/nginx: tests/support/nginx.sh
	@mkdir -p $(@D)
	tests/support/nginx.sh > $@.found
	@mv $@.found $@

build/browser: tests/support/browser.sh
	@mkdir -p $(@D)
	tests/support/browser.sh > $@.found
	@mv $@.found $@

.venv/installed: pyproject.toml constraints.txt | tools
	$(PYTHON) -m venv .venv
	$(VENV)/python -m pip install --quiet --constraint constraints.txt --upgrade pip
	$(VENV)/python -m pip install --quiet --constraint constraints.txt --group dev
	@touch $@

$(NODE_TOOLS): package-lock.json | tools
	npm ci --no-audit --no-fund
	@touch $@

# What must be there already, said before anything is built.
need = @command -v $(1) >/dev/null || { echo "doorkeep needs $(1): $(2)" >&2; exit 1; }
tools:
	$(call need,cargo,install Rust with rustup)
	$(call need,$(PYTHON),install Python 3.10 or newer)
	$(call need,node,install Node 20 or newer)
	$(call need,npm,it comes with Node)
	@$(PYTHON) -c 'import sys, venv, ensurepip; assert sys.version_info >= (3, 10)' 2>/dev/null \
		|| { echo "doorkeep needs Python 3.10 or newer with venv, $(PYTHON) is $$($(PYTHON) -V)" >&2; exit 1; }
	@node -e 'process.exit(process.versions.node.split(".")[0] < 20 ? 1 : 0)' \
		|| { echo "doorkeep needs Node 20 or newer, node is $$(node -v)" >&2; exit 1; }
