# One virtual environment with the pinned tools of pyproject.toml; what the lab needs of the machine is installed by root.
PYTHON ?= python3
RUN = .venv/bin/python
PINNED = import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["test"])

.PHONY: demo test test-cluster test-hosts test-rest test-faults test-faults-tokens test-faults-rest test-vm test-quick quick-a quick-g quick-p quick-rest clean-lab machine machine-vm rpm medium-demo

demo: .venv/ready            # the product at work on two real hosts; without root, on a simulated node
	$(RUN) -m tests.e2e.demo

test: .venv/ready            # everything, three parts side by side, since much of it is waiting; needs root
	@$(MAKE) --no-print-directory -j3 test-cluster test-hosts test-rest medium-demo

test-cluster: export STRIXD_LAB_NAME = strixd-e2e
test-cluster: .venv/ready    # the main job and its faults, on hosts of their own
	$(RUN) -m pytest -m lab tests/e2e

test-hosts: .venv/ready
	$(RUN) -m pytest -m lab --ignore=tests/e2e

test-rest: .venv/ready
	$(RUN) -m pytest -m "not lab"

test-faults: .venv/ready     # every fault of the model, Ray, hosts and link, beside those of the settings and the simulated ones; needs root
	@$(MAKE) --no-print-directory -j2 test-faults-tokens test-faults-rest

test-faults-tokens test-faults-rest: export STRIXD_FAULTS = all
test-faults-tokens: export STRIXD_LAB_NAME = strixd-e2e
test-faults-tokens: .venv/ready
	$(RUN) -m pytest -v -s tests/faults/tokens

test-faults-rest: .venv/ready
	$(RUN) -m pytest --ignore=tests/faults/tokens tests/faults tests/lab/test_laws.py tests/sim/test_pace.py tests/sim/test_random_faults.py

test-vm: .venv/ready machine-vm # a virtual machine boots by its boot entries, by emulation: minutes; needs root
	$(RUN) -m pytest -s tests/vm

test-quick: .venv/ready      # what needs no root and no hosts; side by side, since much of it is waiting
	@$(MAKE) --no-print-directory -j4 quick-a quick-g quick-p quick-rest

quick-a quick-g quick-p:
	$(RUN) -m pytest -q -m "not lab" tests/unit/test_[$(subst quick-,,$@)-$(LAST)]*.py
quick-a: LAST = f
quick-g: LAST = o
quick-p: LAST = z
quick-rest:
	$(RUN) -m pytest -q -m "not lab" --ignore=tests/unit

rpm: machine                 # source and binary packages, in dist/
	@$(PYTHON) packaging/build.py

medium-demo: .venv/ready rpm # media for two nodes from the packages, in dist/medium-demo/
	@$(RUN) -m tests.media.demo

clean-lab: .venv/ready       # clear what a killed run left behind
	$(RUN) -m tests.lab clean
	STRIXD_LAB_NAME=strixd-e2e $(RUN) -m tests.lab clean

machine:
	@$(PYTHON) tests/lab/machine.py

machine-vm:
	@$(PYTHON) tests/lab/machine.py vm

.venv/ready: pyproject.toml | machine
	$(PYTHON) -m venv .venv
	$(RUN) -m pip install --quiet --disable-pip-version-check $$($(RUN) -c '$(PINNED)')
	touch $@
