"""The kernels of a program, as JSON: what it launches, which lines made each kernel, and what it becomes.

`inspect_python(source)`, or for JavaScript `begin`, `settle`, `inspect_value` and `end`, first; then
`explained(number)` and `variant(number, device, opts)` for a kernel of what they found.
"""

import ast
import contextlib
import json
import sys
from dataclasses import replace

from polygrad import Device, Tensor, TinyJit
from polygrad.capture.step import CompiledStep
from polygrad.codegen.lower.passes import LoweringContext, run_passes
from polygrad.codegen.opts.opt import parse_opts, render_opts
from polygrad.codegen.target import Target, Workgroups
from polygrad.engine.explain import opts_of, pass_results, work
from polygrad.engine.peak_flops import peak_flops
from polygrad.engine.profile import profile
from polygrad.engine.timing import time_kernel
from polygrad.errors import ArgumentError, DeviceError
from polygrad.renderer.cstyle.c import CBuilder
from polygrad.renderer.emit import emit
from polygrad.renderer.wgsl.builder import PACKED, WGSLBuilder
from polygrad.tensor.core.registry import live_tensors
from polygrad.tensor.origins import recorded_origins
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.printer import render

MEASURED_SECONDS = 0.25
PROGRAM = "<program>"  # the file that a program is said to be

_origins = []  # of the kernels that were found last
_recording = contextlib.ExitStack()


# --- what a program launches


def line_of_python():
    """The line of the program that runs now."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != PROGRAM:
        frame = frame.f_back
    return None if frame is None else (PROGRAM, frame.f_lineno)


def line_of_javascript():
    """The line of the program that runs now, of which the worker knows."""
    import js

    line = js.programLine()
    return (PROGRAM, int(line)) if line else None


def inspect_python(source):
    """Every launch of what the last line of `source` says to do, timed, and the kernels they run.

    That line is an expression or a compiled step; what is named before is computed beforehand. Raises
    ArgumentError.
    """
    tree = ast.parse(source, PROGRAM)
    if not tree.body or not isinstance(tree.body[-1], ast.Expr):
        raise ArgumentError("kernels: expected a last line that is an expression, got none")
    last = compile(ast.Expression(tree.body.pop().value), PROGRAM, "eval")
    scope = {"Tensor": Tensor}
    with recorded_origins(line_of_python):
        exec(compile(tree, PROGRAM, "exec"), scope)
        settle()
        value = eval(last, scope)
        return launched(value, TinyJit(lambda: eval(last, scope)))


def begin():
    """A program in JavaScript is about to run."""
    end()
    _recording.enter_context(recorded_origins(line_of_javascript))


def settle():
    """Compute all Tensors that there are."""
    for tensor in list(live_tensors()):
        tensor.realize()


def inspect_value(value, captured):
    """`inspect_python` for the value of a program's last line, and the captured function that computes it."""
    return launched(value, captured)


def end():
    """The program in JavaScript has ended."""
    _recording.close()


def launched(value, captured):
    """Every launch of a step, or of a captured function with the result `value`."""
    if isinstance(value, CompiledStep):
        what, compute = "a training step", value.run
    elif isinstance(value, Tensor):
        what, compute = f"a Tensor of shape {list(value.shape)}", captured
    else:
        got = type(value).__name__
        raise ArgumentError(f"kernels: expected the last line to be a Tensor or a compiled step, got {got}")
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
            "places": [{"line": place.line, "gradient": place.gradient} for place in x.places],
        }
        for x in found.launches
    ]
    return json.dumps(
        {
            "what": what,
            "rounds": found.rounds,
            "seconds": found.seconds,
            "peak": peak(Device.DEFAULT),
            "kernels": kernels,
            "launches": launches,
        }
    )


def peak(device):
    """The operations on float32 that a device does in a second; None where that cannot be measured."""
    try:
        return peak_flops(device)
    except DeviceError:
        return None


# --- a kernel, pass by pass


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
    """A kernel before and after each pass, and as text. Nodes keep their numbers throughout."""
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
    device = origin.context.target.name
    source = Device.backend(device).source(origin.kernel.name, run_passes(origin.ast, origin.context))
    return json.dumps({"nodes": nodes, "stages": stages, "device": device, "source": source})


# --- a kernel in other ways


def writer_of(device):
    """The Target of a device, and what writes kernels for it. Of a device that is not here, the Target of a
    usual one: a processor with AVX2, a GPU with the least that WebGPU promises."""
    try:
        backend = Device.backend(device)
        return backend.target, backend.source, backend
    except DeviceError:
        threads = Device.backend("WASM").target.threads
    if device == "WEBGPU":
        target = Target(
            device,
            simd_bytes=16,
            index_bits=32,
            workgroups=Workgroups(),
            max_buffers=8,
            alignment=256,
            float64=False,
            packed=PACKED,
        )
        return target, lambda name, linear: str(emit(name, linear, WGSLBuilder(target)).text), None
    target = Target(device, simd_bytes=32, fma=True, scalar_fma=True, threads=threads)
    return target, lambda name, linear: str(emit(name, linear, CBuilder(target, True))), None


def variant(number, device, opts):
    """A kernel as other Opts or another device make it: its Opts, its source and, on a device that is here,
    its time. `opts`: as text; None: what the heuristics choose. Raises ArgumentError, OptError."""
    target, source, backend = writer_of(device)
    context = LoweringContext(target, True, None if opts is None else parse_opts(opts))
    origin = replace(_origins[number], context=context)
    linear = run_passes(origin.ast, context)
    seconds = None
    if backend is not None and not origin.ast.variables():
        seconds = time_kernel(linear, context, device, backend)
    return json.dumps(
        {"opts": render_opts(opts_of(origin)), "source": source("kernel", linear), "seconds": seconds}
    )
