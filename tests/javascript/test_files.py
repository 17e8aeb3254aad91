"""Files of tensors, the state of optimizers and the list of all names in JavaScript, on every host."""

from __future__ import annotations

import base64
import math
import re
from pathlib import Path
from typing import Any

import pytest
from javascript_compare import compare, is_error
from javascript_hosts import built

from polygrad import Tensor, nn
from polygrad.manifest import reviewed
from polygrad.manifest.inspection import manifest

pytestmark = [pytest.mark.e2e, built]

DATA = (Path(__file__).parent / "file_data.mjs").read_text(encoding="utf-8")
FILES = {name: base64.b64decode(text) for name, text in re.findall(r'(\w+):\s+"([^"]+)"', DATA)}


def plain(x: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(x, Tensor):
        return x.tolist()
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [plain(v) for v in x]
    if isinstance(x, float) and not math.isfinite(x):
        return "NaN" if math.isnan(x) else "Infinity"
    return str(x) if isinstance(x, int) and abs(x) > 2**53 else x


def test_files_hold_what_python_reads_in_them(results: dict[str, Any]) -> None:
    found = results["files"]
    assert "failed" not in found, found
    torch: Any = nn.state.torch_load(FILES["torch"])
    torch["shared"][1].assign(torch["shared"][1] + 10)
    metadata, tensors = nn.state.gguf_load(FILES["gguf"])
    compare(found["torch"], plain(torch), "torch")
    compare(found["gguf"], plain({"metadata": metadata, "tensors": tensors}), "gguf")
    assert found["torch"]["weight"] == [[11, 12], [13, 14]] and found["torch"]["shared"][0] == [11, 12]
    assert found["tar"] == {"a.txt": list(b"hi")} and found["zip"] == {"b.txt": list(b"yo")}
    assert found["shards"] == {"a": [1, 2], "b": [3], "c": [[4]]}
    assert found["moved"] == [True, "float16"]


def test_hostile_and_damaged_files_are_errors(results: dict[str, Any]) -> None:
    found = results["files"]
    assert is_error(found["pickle"], "ArgumentError", "torch_load")
    assert is_error(found["cycle"], "ArgumentError", "a container holds itself")
    assert is_error(found["cut"], "ArgumentError", "")
    assert is_error(found["noFolder"], "ArgumentError", "give the files themselves, in an array")
    assert is_error(
        found["escaped"], "ArgumentError", "a: expected the name of a file beside the index, got ../one"
    )
    assert is_error(found["twice"], "ArgumentError", "expected names of their own in each file, got a twice")
    assert is_error(found["noIndex"], "ArgumentError", "expected an index with a weight_map")


def test_optimizers_give_their_state_and_take_rates_and_closures(results: dict[str, Any]) -> None:
    found = results["optimizerState"]
    assert "failed" not in found, found
    weight = Tensor([1.0, -2.0], requires_grad=True)
    assert found["names"] == list(nn.optim.AdamW([weight], 0.1).state_dict())
    assert found["same"][0] == found["same"][1] and found["steps"] == ["count"]
    compare(found["rates"], [0.5, 0.125], "rates")
    compare(found["stepped"], [[0.875], [0.875]], "stepped")
    compare(found["quasi"], [[3.0, 3.0], 29.0, True], "quasi")
    assert is_error(found["none"], "ArgumentError", "LBFGS.step: expected a function, got undefined")
    assert found["unique"] == [[1, 3], [1, 3], [1, 2]]


# Where JavaScript has what Python calls otherwise.
OTHERWISE = {
    "Device.DEFAULT": "Device.default",
    "Tensor.__getitem__": "Tensor.at",
    "Tensor.__setitem__": "Tensor.setAt",
    "nn.optim.LBFGS.step": "nn.optim.LBFGS.stepWith",
    "CompiledStep.__call__": "CompiledStep.run",
}
# Objects that nobody constructs: their classes are no members of a session.
NOT_MADE = ("CompiledStep", "nn.optim.LRScheduler", "nn.optim.Optimizer", "TinyJit")


def javascript_name(identity: str) -> str:
    owner, _, name = OTHERWISE.get(identity, identity).rpartition(".")
    name = (
        "forward" if name == "__call__" else re.sub(r"(?<=[a-z0-9])_([a-z0-9])", lambda m: m[1].upper(), name)
    )
    return f"{owner}.{name}".removeprefix(".")


def test_all_of_the_public_api_is_there_or_listed_with_the_reason(results: dict[str, Any]) -> None:
    """What has no class in a session is looked for in what is derived from it, or in TypeScript's checks."""
    names = set(results["names"])
    data = manifest()
    ids = [*reviewed.TRANSFORMS, *(f["id"] for f in data["functions"]), *(a["id"] for a in data["aliases"])]
    for c in data["classes"]:
        if c["id"].startswith(NOT_MADE):
            continue
        ids.append(c["id"])
        ids += [m["id"] for m in [*c["attributes"], *c["properties"], *c["methods"]]]
    assert [i for i in ids if i not in reviewed.PYTHON_ONLY and javascript_name(i) not in names] == []
    assert [i for i in reviewed.PYTHON_ONLY if javascript_name(i) in names] == []
