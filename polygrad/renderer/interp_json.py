"""The INTERP renderer: a scalar linear kernel as JSON, which `runtime/interp/device.py` runs.

    {"name": NAME, "instructions": [[op, dtype, [positions of the sources], argument], ...]}

Arguments are JSON values: a NamedTuple is a list, a float is `float.hex` text ("nan", "inf"), None is null.
The meaning of each op is the runtime's matter.
"""

from __future__ import annotations

import json
from typing import Any

from polygrad.errors import InternalError
from polygrad.uop.args import Param
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


def render_interp(name: str, linear: list[UOp]) -> bytes:
    """The linear kernel as UTF-8 JSON. Raises InternalError for an optimised one: it has tiles."""
    position = {node: i for i, node in enumerate(linear)}
    instructions = [
        [node.op.name, node.dtype.name, [position[s] for s in node.src], _argument(node)] for node in linear
    ]
    return json.dumps({"name": name, "instructions": instructions}, separators=(",", ":")).encode()


def _argument(node: UOp) -> Any:
    arg = node.arg
    if node.op is Ops.CONST:
        return float(arg).hex() if node.dtype.is_float else arg
    if node.op is Ops.INDEX and arg is not None:
        raise InternalError(f"INTERP: expected an unoptimised kernel, got INDEX with {arg}")
    if isinstance(arg, Param):
        return [arg.slot, arg.size, arg.space]
    return list(arg) if isinstance(arg, tuple) else arg
