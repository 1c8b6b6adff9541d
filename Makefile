# `make run` serves, `make test` tests. Both install what is missing.
PYTHON ?= $(shell scripts/python)
VENV   ?= .venv
BUILT  ?= .venv-compiled
BIN    := $(VENV)/bin
ARGS   ?=

# Tests start hundreds of servers. Where Python is told to write no byte code, each would compile every module again.
BYTECODE = @$(BIN)/python -m compileall -q -j 2 src tests bench

.PHONY: run test test-long test-scale test-compiled lint check docs bench clients smb-torture samba postgres haproxy systemd curl browser screenshots wrk strace clean

# What a run needs.
$(VENV)/.run: pyproject.toml
	scripts/venv $(PYTHON) $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	$(BIN)/python -m compileall -q src
	touch $@

# What developing needs as well.
$(VENV)/.dev: pyproject.toml
	scripts/venv $(PYTHON) $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev,bench]'
	touch $@ $(VENV)/.run

run: $(VENV)/.run
	$(BIN)/kyanite serve $(ARGS)

# Samba's programs: clients for the tests of SMB, and the server that ours is compared with.
samba:
	@scripts/samba

# A database of which tests start private servers.
postgres:
	@scripts/postgres

# A load balancer, for tests of several nodes.
haproxy:
	@command -v haproxy >/dev/null || test -x /usr/sbin/haproxy || scripts/debian haproxy

# A browser and its driver, for the tests of the console.
browser:
	@scripts/browser

# A load client of the benchmark. Without it the benchmark drives every row with its own client, and says so.
wrk:
	@scripts/wrk || true

# Checks the unit of packaging/systemd.
systemd:
	@command -v systemd-analyze >/dev/null || scripts/debian systemd

# What examples of the documentation call.
curl:
	@command -v curl >/dev/null && command -v openssl >/dev/null || scripts/debian curl openssl

# Counts system calls, for the budgets of make test-long.
strace:
	@command -v strace >/dev/null || scripts/debian strace

# All tests; then those of the blob and queue SDKs again, in one of the two forms of the client, on PostgreSQL and an object store.
test: $(VENV)/.dev samba postgres haproxy systemd curl browser wrk
	$(BYTECODE)
	$(BIN)/pytest -n auto --dist worksteal $(ARGS)
	$(if $(ARGS),,$(BIN)/pytest -n auto --dist worksteal --store scale -k 'not async' tests/sdk/blob tests/sdk/queue)

# Random tests with twenty times the examples.
test-long: $(VENV)/.dev samba postgres haproxy systemd curl browser wrk strace
	$(BYTECODE)
	$(BIN)/pytest -n auto --dist worksteal --hypothesis-profile long --timeout 3600 $(ARGS)

# The tests of all services on PostgreSQL and an object store, and ten failovers.
test-scale: $(VENV)/.dev samba postgres haproxy
	$(BYTECODE)
	KYANITE_TEST_FAILOVERS=10 $(BIN)/pytest -n auto --dist worksteal --timeout 1800 --store scale tests/sdk tests/smb tests/nodes $(ARGS)

# The compiled wheel, in a virtual environment of its own, and the tests of what is compiled against it.
test-compiled:
	@scripts/compiled $(PYTHON) $(BUILT) $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The parts of the documentation that are made from the code.
docs: $(VENV)/.dev
	$(BIN)/python -m documentation

# The pictures of docs/console.md, by the tests that check what they show.
screenshots: $(VENV)/.dev browser
	$(BIN)/pytest -q -n 0 --screenshots tests/console/test_browser.py

bench: $(VENV)/.dev wrk
	$(BIN)/python -m bench $(ARGS)

clients: $(VENV)/.dev
	scripts/clients $(ARGS)

# Samba's own tests of an SMB server against smbd and this one: make smb-torture ARGS='lock oplock'
smb-torture: $(VENV)/.dev samba
	$(BIN)/python -m tests.smb.torture $(ARGS)

clean:
	rm -rf $(VENV) $(BUILT) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .bench .clients .torture
