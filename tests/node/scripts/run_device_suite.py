"""Runs the device suite inside Pyodide, and says as JSON how many tests passed.

`run_device_suite.py ARCHIVE DEVICES ...`: a zip file with the tests and what they import, devices separated
by commas, then pytest's own arguments. The archive is unpacked into Python's file system.
"""

import json
import os
import sys
import zipfile
from collections import Counter

archive, DEVICES, *arguments = sys.argv[1:]
with zipfile.ZipFile(archive) as whole:
    whole.extractall("/suite")
os.chdir("/suite")
sys.path[:0] = ["/suite/packages", "/suite/tests"]

import device_suite  # noqa: E402
import pytest  # noqa: E402


class Suite:
    """Runs every test on each of the devices, and counts."""

    def __init__(self) -> None:
        self.counts = Counter()
        self.failures = []

    def pytest_generate_tests(self, metafunc):
        if "device" in metafunc.fixturenames:
            metafunc.parametrize("device", DEVICES.split(","))

    def pytest_collection_modifyitems(self, items):
        device_suite.skip_float64(items)

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            self.counts[report.outcome] += 1
        if report.failed:
            self.failures.append(f"{report.nodeid}: {report.longreprtext[-1500:]}")


suite = Suite()
options = [
    "--import-mode=importlib",
    "--rootdir=.",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:faulthandler",
]
status = pytest.main([*options, "-q", *arguments], plugins=[suite, device_suite])
print(json.dumps({"status": int(status), "failures": suite.failures, **suite.counts}))
