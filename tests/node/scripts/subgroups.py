"""Kernels that exchange values in subgroups, inside Pyodide: as JSON whether they did, and gave the same."""

import json
import os
import sys

sys.path.insert(0, os.getcwd())

from webgpu_features import GROUPED, exchanging, run

from polygrad import Device
from polygrad.runtime.webgpu.probes import neighbours_in_subgroup

runtime = Device["WEBGPU"]
adapter = runtime.adapter
result = {"features": sorted(adapter.features), "subgroup": adapter.subgroup}
if adapter.subgroup:
    result["found"] = neighbours_in_subgroup(runtime.host)
    result["exchanged"], result["same"] = [], []
    for name, work in GROUPED.items():
        targets = [exchanging(adapter.subgroup, nbytes) for nbytes in (0, 4)]
        (shared, _), (registers, kernels) = run(work, "float32", targets)
        result["same"].append(registers == shared)
        if any(k.subgroup for k in kernels):
            result["exchanged"].append(name)
print(json.dumps(result))
