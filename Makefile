# `make run` serves, `make test` tests. Both install what is missing.
PYTHON ?= $(shell scripts/python)
VENV   ?= .venv
BUILT  ?= .venv-compiled
BIN    := $(VENV)/bin
ARGS   ?=

.PHONY: run test test-long test-compiled lint check bench clients smb-torture samba wrk strace clean

# What a run needs.
$(VENV)/.run: pyproject.toml
	scripts/venv $(PYTHON) $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
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

# A load client of the benchmark. Without it the benchmark drives every row with its own client, and says so.
wrk:
	@scripts/wrk || true

# Counts system calls, for the budgets of make test-long.
strace:
	@command -v strace >/dev/null || scripts/debian strace

test: $(VENV)/.dev samba wrk
	$(BIN)/pytest -n auto --dist worksteal $(ARGS)

# Random tests with twenty times the examples.
test-long: $(VENV)/.dev samba wrk strace
	$(BIN)/pytest -n auto --dist worksteal --hypothesis-profile long --timeout 3600 $(ARGS)

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

bench: $(VENV)/.dev wrk
	$(BIN)/python -m bench $(ARGS)

clients: $(VENV)/.dev
	scripts/clients $(ARGS)

# Samba's own tests of an SMB server against smbd and this one: make smb-torture ARGS='lock oplock'
smb-torture: $(VENV)/.dev samba
	$(BIN)/python -m tests.smb.torture $(ARGS)

clean:
	rm -rf $(VENV) $(BUILT) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .bench .clients .torture
