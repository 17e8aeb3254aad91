"""The kernels of a program, as JSON: what it launches, and what each kernel was made of, pass by pass.

`launched(source)` first, then `explained(number)` for a kernel of what it found.
"""

import ast
import json

from polygrad import Device, Tensor, TinyJit
from polygrad.capture.step import CompiledStep
from polygrad.engine.explain import pass_results, work
from polygrad.engine.peak_flops import peak_flops
from polygrad.engine.profile import profile
from polygrad.errors import ArgumentError
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.printer import render
from polygrad.wasm.wat import print_module

MEASURED_SECONDS = 0.25

_origins = []  # of the kernels that were found last


def computation_of(source):
    """What the last line of `source` says to do: evaluate an expression, or take a step.

    What is named before is computed beforehand. Raises ArgumentError.
    """
    tree = ast.parse(source)
    if not tree.body or not isinstance(tree.body[-1], ast.Expr):
        raise ArgumentError("kernels: expected a last line that is an expression, got none")
    last = compile(ast.Expression(tree.body.pop().value), "<exec>", "eval")
    scope = {"Tensor": Tensor}
    exec(compile(tree, "<exec>", "exec"), scope)
    for value in list(scope.values()):
        if isinstance(value, Tensor):
            value.realize()
    value = eval(last, scope)
    if isinstance(value, CompiledStep):
        return "a training step", value.run
    if isinstance(value, Tensor):
        return f"a Tensor of shape {list(value.shape)}", TinyJit(lambda: eval(last, scope))
    got = type(value).__name__
    raise ArgumentError(f"kernels: expected the last line to be a Tensor or a compiled step, got {got}")


def launched(source):
    """Every launch of what `source` computes, timed, and the kernels they run."""
    what, compute = computation_of(source)
    found = profile(compute, MEASURED_SECONDS)
    _origins[:] = {x.origin.kernel.name: x.origin for x in found.launches}.values()
    number = {origin.kernel.name: i for i, origin in enumerate(_origins)}
    kernels = []
    for origin in _origins:
        todo, kernel = work(origin), origin.kernel
        kernels.append(
            {
                "name": kernel.name,
                "codeBytes": len(kernel.code),
                "parallel": kernel.parallel,
                "flops": todo.flops,
                "bytes": todo.nbytes,
            }
        )
    launches = [
        {
            "kernel": number[x.origin.kernel.name],
            "seconds": x.seconds,
            "buffers": [f"{b.role} {b.dtype}[{b.size}]" for b in x.buffers],
        }
        for x in found.launches
    ]
    return json.dumps(
        {
            "what": what,
            "rounds": found.rounds,
            "seconds": found.seconds,
            "peak": peak_flops(Device.DEFAULT),
            "kernels": kernels,
            "launches": launches,
        }
    )


def kind_of(node):
    """How a node is coloured."""
    if node.op in (Ops.RANGE, Ops.END, Ops.DEFINE_VAR):
        return "loop"
    if node.op in (Ops.PARAM, Ops.DEFINE_REG, Ops.INDEX, Ops.LOAD, Ops.STORE, Ops.AFTER):
        return "memory"
    if node.op is Ops.CONST:
        return "constant"
    if node.op is Ops.REDUCE:
        return "reduction"
    if node.op in GroupOp.Elementwise:
        return "index" if node.dtype.name == "index" else "arithmetic"
    return "structure"


def details_of(order, listing):
    """What a listing says of each node beyond its op, dtype and sources; of an INDEX also where it points."""
    # a line is: number, op, dtype, sources, and what we are after
    lines = zip(order, listing.split("\n"), strict=True)
    rest = {node: " ".join(line.split()[3 + len(node.src) :]) for node, line in lines}

    def detail(node):
        constants = [s.op is Ops.CONST for s in node.src]
        if node.op is Ops.INDEX:
            return " ".join(filter(None, (rest.get(node.src[1], ""), rest[node])))
        if rest[node] or not any(constants) or node.op is Ops.RANGE:
            return rest[node]
        return ", ".join(
            rest.get(s, "") if const else "·" for s, const in zip(node.src, constants, strict=True)
        )

    return [detail(node) for node in order]


def explained(number):
    """A kernel before and after each pass, and as WebAssembly text. Nodes keep their numbers throughout."""
    origin = _origins[number]
    nodes, numbers = [], {}
    stages = []
    results = [("", origin.ast, True), *((r.name, r.code, r.changed) for r in pass_results(origin))]
    for name, code, changed in results:
        stage = {"name": name, "changed": changed}
        stages.append(stage)
        if not changed:
            continue
        order = code if isinstance(code, list) else code.toposort()
        for node in order:
            if node not in numbers:
                sources = [numbers[s] for s in node.src if s in numbers]
                numbers[node] = len(nodes)
                nodes.append(
                    {"op": node.op.name, "dtype": node.dtype.name, "kind": kind_of(node), "sources": sources}
                )
        listing = render(code)
        stage["order"] = [numbers[node] for node in order]
        stage["details"] = details_of(order, listing)
        stage["listing"] = listing
    return json.dumps({"nodes": nodes, "stages": stages, "wat": print_module(origin.kernel.code)})
