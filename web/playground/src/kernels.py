"""The kernels of an expression, as JSON: `source` is set beforehand, to statements that end in a Tensor."""

import ast
import dataclasses
import functools
import json
import time

from polygrad import Device, Tensor
from polygrad.engine.realize import arena_for
from polygrad.engine.recording import Recording, recorded
from polygrad.errors import ArgumentError
from polygrad.wasm.wat import print_module

MEASURED_SECONDS = 0.05


def value_of(source):
    """The last expression of `source`, what is named before it realized. Raises ArgumentError."""
    tree = ast.parse(source)
    if not tree.body or not isinstance(tree.body[-1], ast.Expr):
        raise ArgumentError("kernels: expected a last line that is an expression, got none")
    last = ast.Expression(tree.body.pop().value)
    scope = {"Tensor": Tensor}
    exec(compile(tree, "<exec>", "exec"), scope)
    for value in scope.values():
        if isinstance(value, Tensor):
            value.realize()
    result = eval(compile(last, "<exec>", "eval"), scope)
    if not isinstance(result, Tensor):
        raise ArgumentError(f"kernels: expected the last line to be a Tensor, got a {type(result).__name__}")
    return result


def microseconds(run):
    """How long the quickest of many runs takes; the first one, which compiles, is not counted."""
    run()
    best, end = float("inf"), time.perf_counter() + MEASURED_SECONDS
    while time.perf_counter() < end:
        # one run may be shorter than what the clock can tell
        started = time.perf_counter()
        for _ in range(10):
            run()
        best = min(best, (time.perf_counter() - started) / 10)
    return best * 1e6


def launches_of(run):
    """Each launch by itself: its kernel's name, its text and its time."""
    program = run.program
    device = Device[program.device]
    handles = [b.handle if b is not None else None for b in run.buffers]
    for launch in program.launches:
        kernel = program.kernels[launch.kernel]
        alone = device.load(dataclasses.replace(program, launches=(launch,)))
        once = functools.partial(alone.run, handles, arena_for(program), run.variables)
        yield {
            "name": kernel.name,
            "bytes": len(kernel.code),
            "buffers": kernel.n_buffers,
            "parallel": kernel.parallel,
            "microseconds": microseconds(once),
            "text": print_module(kernel.code),
        }


def inspect(source):
    result = value_of(source)
    recording = Recording(frozenset(), frozenset(), frozenset())
    with recorded(recording, lambda _: None):
        result.realize()
    for run in recording.runs:
        run.perform()
    launches = [launch for run in recording.runs for launch in launches_of(run)]
    return json.dumps({"shape": result.shape, "launches": launches})
