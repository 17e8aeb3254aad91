"""The manifest says all there is to say, and what it says is true."""

from __future__ import annotations

import functools
import inspect
import json
import subprocess
import sys
from typing import Any

import pytest

import polygrad
from polygrad import Tensor, TinyJit, compile_step, errors, nn
from polygrad.errors import InternalError
from polygrad.manifest import reviewed
from polygrad.manifest.inspection import CLASSES, manifest, result_of, type_of

MANIFEST = manifest()
CALLABLES = {
    c["id"]: c
    for c in [
        *MANIFEST["functions"],
        *(m for k in MANIFEST["classes"] for m in k["methods"] + k["properties"]),
    ]
}
# In `polygrad.__all__` but not callable: namespaces, and the base of the errors.
NAMESPACES = {"DType", "PolygradError", "dtypes", "errors", "nn"}


def types_of(entry: dict[str, Any]) -> list[str]:
    return [t for p in entry["parameters"] for t in p["type"].split(" | ")]


def test_it_is_json_and_the_same_in_every_process() -> None:
    command = [sys.executable, "-m", "polygrad.manifest"]
    seen = {
        subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for seed in ("1", "2")
    }
    assert [json.loads(text) for text in seen] == [json.loads(json.dumps(MANIFEST))]


def test_every_public_name_is_in_it_or_listed_with_the_reason() -> None:
    ids = {c["id"] for c in MANIFEST["classes"]} | {a["id"] for a in MANIFEST["aliases"]} | set(CALLABLES)
    ids |= reviewed.PYTHON_ONLY.keys()
    assert set(polygrad.__all__) - NAMESPACES <= ids | reviewed.TRANSFORMS
    spaces = {"nn.data", "nn.datasets", "nn.init", "nn.optim", "nn.state"}
    assert {f"nn.{n}" for n in nn.__all__} - spaces <= ids
    for space in spaces:
        assert {f"{space}.{n}" for n in getattr(nn, space.removeprefix("nn.")).__all__} <= ids
    public = {n for n in dir(Tensor) if not n.startswith("_")}
    attributes = set(reviewed.ATTRIBUTES["Tensor"])
    assert {i.partition(".")[2] for i in ids if i.startswith("Tensor.")} | attributes == public | set(
        reviewed.SPECIAL_METHODS
    ) - {"__call__"}


def test_ids_are_unique_and_types_are_of_the_vocabulary() -> None:
    ids = [c["id"] for c in MANIFEST["classes"]] + list(CALLABLES)
    assert len(ids) == len(set(ids))
    entries = [c for c in CALLABLES.values() if "parameters" in c]
    for entry in [*entries, *(k["constructor"] for k in MANIFEST["classes"] if "constructor" in k)]:
        assert [t for t in types_of(entry) if t not in reviewed.TYPES and not t.startswith("'")] == []


def test_the_tables_name_only_what_exists() -> None:
    known = set(CALLABLES) | set(CLASSES)
    for table in (reviewed.RESULTS, reviewed.KEYWORDS, reviewed.RETURNS_SELF, reviewed.READS):
        assert set(table) - known == set()
    for name in [*reviewed.PYTHON_ONLY, *reviewed.TRANSFORMS]:
        owner, _, last = name.rpartition(".")
        found: Any = CLASSES.get(owner) or functools.reduce(
            getattr, owner.split(".") if owner else [], polygrad
        )
        assert hasattr(found, last) or last in reviewed.ATTRIBUTES.get(owner, {}), name
    arguments = {f"{i}({p['name']})" for i, c in CALLABLES.items() for p in c.get("parameters", ())}
    arguments |= {
        f"{c['id']}({p['name']})"
        for c in MANIFEST["classes"]
        for p in c.get("constructor", {"parameters": ()})["parameters"]
    }
    names = {a[a.index("(") :] for a in arguments}
    assert {a for a in reviewed.ARGUMENTS if a not in arguments and a not in names} == set()


def test_arguments_have_the_kinds_and_defaults_of_their_signatures() -> None:
    linear = next(c for c in MANIFEST["classes"] if c["id"] == "nn.Linear")["constructor"]["parameters"]
    assert linear == [
        {"name": "in_features", "kind": "positional", "type": "int"},
        {"name": "out_features", "kind": "positional", "type": "int"},
        {"name": "bias", "kind": "positional", "type": "bool", "default": True},
        {"name": "dtype", "kind": "positional", "type": "dtype | None", "default": None},
    ]
    assert [p["kind"] for p in CALLABLES["Tensor.zeros"]["parameters"]] == ["rest", *["keyword"] * 3]
    assert CALLABLES["Tensor.realize"]["raises"] == ["DeviceError", "OutOfMemoryError", "CompileError"]
    assert CALLABLES["Tensor.full"]["raises"] == ["ShapeError", "OverflowError"]


def test_a_name_without_an_entry_is_an_error() -> None:
    def strange(x: Any) -> Any: ...

    with pytest.raises(InternalError, match="expected a known annotation or an entry of RESULTS for Tensor"):
        result_of("Tensor.strange", strange)
    with pytest.raises(InternalError, match=r"the type of Tensor.strange\(odd\), annotated 'Any'"):
        type_of("Tensor.strange", "odd", "Any")


# --- what the reviewed tables say, tried out

X = Tensor([[1.0, 2.0], [3.0, 4.0]])


def test_what_is_said_to_return_itself_does() -> None:
    calls: dict[str, Any] = {
        "Tensor.assign": lambda t: t.assign(X),
        "Tensor.backward": lambda t: t.requires_grad_().sum().backward() and t,
        "Tensor.contiguous_backward": lambda t: t.contiguous_backward(),
        "Tensor.is_param_": lambda t: t.is_param_(),
        "Tensor.realize": lambda t: t.realize(),
        "Tensor.replace": lambda t: t.replace(X),
        "Tensor.requires_grad_": lambda t: t.requires_grad_(),
        "Tensor.retain_grad": lambda t: t.retain_grad(),
        "Tensor.to_": lambda t: t.to_("INTERP"),
    }
    assert calls.keys() == reviewed.RETURNS_SELF
    for call in calls.values():
        t = Tensor([[0.0, 1.0], [2.0, 3.0]])
        assert call(t) is t


OBJECTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "Tensor": (lambda: Tensor([1.0]), {}),
    "nn.Linear": (lambda **k: nn.Linear(2, 3, **k), {"bias": False}),
    "nn.Conv2d": (lambda **k: nn.Conv2d(2, 3, 3, **k), {"bias": False}),
    "nn.BatchNorm": (lambda **k: nn.BatchNorm(2, **k), {"affine": False, "track_running_stats": False}),
    "nn.LayerNorm": (lambda **k: nn.LayerNorm(2, **k), {"elementwise_affine": False}),
    "nn.RMSNorm": (lambda **k: nn.RMSNorm(2, **k), {"elementwise_affine": False}),
    "nn.GroupNorm": (lambda **k: nn.GroupNorm(1, 2, **k), {"affine": False}),
    "nn.InstanceNorm": (lambda **k: nn.InstanceNorm(2, **k), {"affine": False}),
    "nn.Embedding": (lambda: nn.Embedding(3, 2), {}),
    "nn.Bilinear": (lambda **k: nn.Bilinear(2, 3, 4, **k), {"bias": False}),
    "nn.Conv1d": (lambda **k: nn.Conv1d(2, 3, 3, **k), {"bias": False}),
    "nn.Conv3d": (lambda **k: nn.Conv3d(2, 3, 3, **k), {"bias": False}),
    "nn.ConvTranspose1d": (lambda **k: nn.ConvTranspose1d(2, 3, 3, **k), {"bias": False}),
    "nn.ConvTranspose2d": (lambda **k: nn.ConvTranspose2d(2, 3, 3, **k), {"bias": False}),
    "nn.ConvTranspose3d": (lambda **k: nn.ConvTranspose3d(2, 3, 3, **k), {"bias": False}),
    "nn.LayerNorm2d": (lambda **k: nn.LayerNorm2d(2, **k), {"elementwise_affine": False}),
    "nn.LSTMCell": (lambda **k: nn.LSTMCell(2, 3, **k), {"bias": False}),
    "nn.LSTM": (lambda **k: nn.LSTM(2, 3, **k), {"bias": False}),
    "nn.GRU": (lambda **k: nn.GRU(2, 3, **k), {"bias": False}),
    "nn.MultiheadAttention": (lambda **k: nn.MultiheadAttention(4, 2, **k), {"bias": False}),
    "nn.TransformerBlock": (lambda: nn.TransformerBlock(4, 2), {}),
    "nn.optim.Optimizer": (lambda: nn.optim.Optimizer([Tensor([1.0])], 0.1), {}),
    "nn.optim.SGD": (lambda: nn.optim.SGD([Tensor([1.0])], momentum=0.5), {}),
    "nn.optim.AdamW": (lambda: nn.optim.AdamW([Tensor([1.0])]), {}),
    "nn.optim.OptimizerGroup": (lambda: nn.optim.OptimizerGroup(nn.optim.SGD([Tensor([1.0])])), {}),
    "nn.optim.LBFGS": (lambda: nn.optim.LBFGS([Tensor([1.0])]), {}),
    "nn.optim.LARS": (lambda: nn.optim.LARS([Tensor([1.0])]), {}),
    "nn.optim.Muon": (lambda: nn.optim.Muon([Tensor([[1.0]])]), {}),
    "nn.optim.LAMB": (lambda: nn.optim.LAMB([Tensor([1.0])]), {}),
    "nn.optim.RMSprop": (lambda: nn.optim.RMSprop([Tensor([1.0])]), {}),
    "nn.optim.Adamax": (lambda: nn.optim.Adamax([Tensor([1.0])]), {}),
    "nn.optim.NAdam": (lambda: nn.optim.NAdam([Tensor([1.0])]), {}),
    "nn.optim.RAdam": (lambda: nn.optim.RAdam([Tensor([1.0])]), {}),
    "nn.optim.Adagrad": (lambda: nn.optim.Adagrad([Tensor([1.0])]), {}),
    "nn.optim.Adadelta": (lambda: nn.optim.Adadelta([Tensor([1.0])]), {}),
    "nn.optim.Rprop": (lambda: nn.optim.Rprop([Tensor([1.0])]), {}),
    "nn.optim.ASGD": (lambda: nn.optim.ASGD([Tensor([1.0])]), {}),
    "nn.optim.StepLR": (lambda: nn.optim.StepLR(optimizer(), 2), {}),
    "nn.optim.MultiStepLR": (lambda: nn.optim.MultiStepLR(optimizer(), [2, 3]), {}),
    "nn.optim.ExponentialLR": (lambda: nn.optim.ExponentialLR(optimizer(), 0.9), {}),
    "nn.optim.LinearLR": (lambda: nn.optim.LinearLR(optimizer()), {}),
    "nn.optim.CosineAnnealingLR": (lambda: nn.optim.CosineAnnealingLR(optimizer(), 9), {}),
    "nn.optim.OneCycleLR": (lambda: nn.optim.OneCycleLR(optimizer(), 0.1, 9), {}),
    "nn.optim.SequentialLR": (
        lambda: nn.optim.SequentialLR(optimizer(), [nn.optim.StepLR(optimizer(), 1)], []),
        {},
    ),
    "nn.optim.ChainedScheduler": (
        lambda: nn.optim.ChainedScheduler([nn.optim.StepLR(optimizer(), 1)]),
        {},
    ),
    "nn.optim.ConstantLR": (lambda: nn.optim.ConstantLR(optimizer()), {}),
    "nn.optim.PolynomialLR": (lambda: nn.optim.PolynomialLR(optimizer()), {}),
    "nn.optim.CyclicLR": (lambda: nn.optim.CyclicLR(optimizer(), 0.1, 0.2), {}),
    "nn.optim.CosineAnnealingWarmRestarts": (
        lambda: nn.optim.CosineAnnealingWarmRestarts(optimizer(), 3),
        {},
    ),
    "nn.optim.ReduceLROnPlateau": (lambda: nn.optim.ReduceLROnPlateau(optimizer()), {}),
    "TinyJit": (lambda: TinyJit(lambda: None), {}),
    "CompiledStep": (lambda: compiled_step(), {}),
}


def optimizer() -> Any:
    return nn.optim.SGD([Tensor([1.0])])


# Not made by their class's name; the bases are tried as what is derived from them.
NOT_MADE = {*reviewed.ALIASES, "Variable", "Device", "nn.optim.LRScheduler"}


def compiled_step() -> Any:
    model = nn.Linear(2, 1)
    return compile_step(lambda m, x: m(x).sum(), model, nn.optim.SGD(nn.state.get_parameters(model)), X)


def attributes_of(name: str) -> list[dict[str, Any]]:
    entry = next(c for c in MANIFEST["classes"] if c["id"] == name)
    return [*(attributes_of(entry["base"]) if "base" in entry else []), *entry["attributes"]]


def kind_of(value: Any) -> str:
    if isinstance(value, Tensor):
        return "tensor"
    many = isinstance(value, list) and value and all(isinstance(x, Tensor) for x in value)
    return "tensors" if many else "value"


@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_has_the_attributes_that_are_listed(name: str) -> None:
    make, off = OBJECTS[name]
    assert set(OBJECTS) == {n for n in CLASSES if n not in NOT_MADE}
    for entry in attributes_of(name) if name != "Tensor" else []:
        value = getattr(make(), entry["name"])
        if entry["result"]["kind"] != "host" and not (isinstance(value, list) and not value):
            assert kind_of(value) == entry["result"]["kind"]
    listed = {a["name"]: a.get("present_if") for a in attributes_of(name)}
    if name != "Tensor":
        own = {n for n in vars(make()) if not n.startswith("_")} - {"__wrapped__"}
        assert own == set(listed)
    # A Tensor that is there only by an argument is None, or not there, without it.
    without = make(**off) if off else make()
    for attribute, condition in listed.items():
        if condition is not None:
            assert off[condition] is False
            assert getattr(without, attribute, None) is None


def test_results_are_what_annotations_and_tables_say() -> None:
    tried = {
        "Tensor.sort": X.sort(),
        "Tensor.topk": X.topk(1),
        "Tensor.var_mean": X.var_mean(),
        "Tensor.std_mean": X.std_mean(),
        "Tensor.split": X.split(1),
        "Tensor.chunk": X.chunk(2),
        "Tensor.sum": X.sum(),
        "Tensor.numel": X.numel(),
        "Tensor.item": X.sum().item(),
        "nn.optim.Adam": nn.optim.Adam([Tensor([1.0])]),
    }
    for name, value in tried.items():
        said = CALLABLES[name]["result"]
        if said["kind"] == "tensors":
            assert all(isinstance(x, Tensor) for x in value)
            assert said["count"] in (None, len(value))
        elif said["kind"] == "object":
            assert isinstance(value, CLASSES[said["class"]])
        else:
            assert (said["kind"] == "tensor") is isinstance(value, Tensor)
    assert CALLABLES["Tensor.gradient"]["result"]["count"] == "arguments"
    a, b = Tensor([1.0]), Tensor([2.0])
    assert len((a * b).sum().gradient(a, b)) == 2
    assert CALLABLES["Tensor.meshgrid"]["result"]["count"] == "arguments + 1" and len(a.meshgrid(b)) == 2


def test_every_error_is_listed_with_its_base() -> None:
    own = {n.rstrip("_") for n, v in vars(errors).items() if inspect.isclass(v)}
    assert {e["name"] for e in MANIFEST["errors"]} == own
    assert {e["base"] for e in MANIFEST["errors"]} == {"RuntimeError", "PolygradError", "DistributedError"}
