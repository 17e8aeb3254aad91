"""Runs the device suite inside Pyodide, and says as JSON how many tests passed. Arguments: pytest's own."""

import json
import sys
from collections import Counter

sys.path.insert(0, "packages")

import pytest

from polygrad import Device

# WEBGPU has tests of its own.
DEVICES = [name for name in Device.available() if name != "WEBGPU"]


class Suite:
    """Runs every test on each device of this host, and counts."""

    def __init__(self) -> None:
        self.counts = Counter()
        self.failures = []

    def pytest_generate_tests(self, metafunc):
        if "device" in metafunc.fixturenames:
            metafunc.parametrize("device", DEVICES)

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            self.counts[report.outcome] += 1
        if report.failed:
            self.failures.append(f"{report.nodeid}: {report.longreprtext[-1500:]}")


suite = Suite()
options = [
    "--import-mode=importlib",
    "--rootdir=.",
    "-o",
    "pythonpath=tests",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:faulthandler",
]
status = pytest.main([*options, "-q", *sys.argv[1:]], plugins=[suite])
print(json.dumps({"status": int(status), "devices": DEVICES, "failures": suite.failures, **suite.counts}))
