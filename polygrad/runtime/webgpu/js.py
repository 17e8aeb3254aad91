"""WebGPU of the page or of Node as a `WebGPUHost`, for Pyodide: a thin skin over the TypeScript class
`WebGPUDevice`.

polygrad's loaders register what opens it in the JavaScript module `polygrad_host`. Importing this module
without one raises ImportError. Only a read waits, and opening the device: in Node the GPU is in a worker and
the answer is there at once; in a page Python is suspended, which takes an entry that JavaScript can wait for.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import polygrad_host
from js import Object
from pyodide.ffi import JsException, can_run_sync, run_sync, to_js

from polygrad.errors import CompileError, DeviceError, InternalError, OutOfMemoryError
from polygrad.runtime.gpu import KernelSource
from polygrad.runtime.webgpu.host import (
    WORD,
    Adapter,
    Copy,
    Range,
    Step,
    WebGPUCounters,
    WebGPUHost,
    numbers,
)

_DISPATCH, _COPY = 0, 1  # steps, as `wasm_runtime/src/webgpu/steps.ts` has them
_ERRORS: dict[str, type[Exception]] = {
    "CompileError": CompileError,
    "DeviceError": DeviceError,
    "OutOfMemoryError": OutOfMemoryError,
}


def open_host() -> JsWebGPUHost:
    """The best adapter that there is. Raises DeviceError when there is none."""
    device = _result(polygrad_host.openGpu, (), "open the GPU")
    if device is None:
        raise DeviceError(
            "device WEBGPU: no GPU adapter was found: use a browser with WebGPU, on a page served by "
            'https or from localhost; in Node, npm install webgpu and a driver; or device="WASM"'
        )
    return JsWebGPUHost(device)


def _result(call: Any, args: tuple[Any, ...], what: str) -> Any:
    """What a method gives, or what its promise resolves to."""
    try:
        found = call(*args)
        return _wait(found, what) if hasattr(found, "then") else found
    except JsException as e:
        raise _error(e) from e


def _wait(promise: Any, what: str) -> Any:
    _check_suspends(what)
    return run_sync(promise)


def _check_suspends(what: str) -> None:
    """Raises DeviceError where Python cannot be suspended."""
    if not can_run_sync():
        raise DeviceError(
            f"device WEBGPU: expected a call that may wait for the GPU ({what}), got one that "
            "JavaScript made at once: call Python by runPythonAsync or f.callPromising(), in an engine that "
            "can suspend it (JSPI: Chrome 137, Firefox 153, Safari 27, Node 24), or read by "
            "`await t.data_async()`"
        )


def _error(e: JsException) -> Exception:
    return _ERRORS.get(e.name, InternalError)(e.message)


def _words(words: array[int]) -> Any:
    return to_js(words)


class JsWebGPUHost(WebGPUHost):
    """A `WebGPUDevice`, or in Node what sends the same calls to one."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._read, self._submit, self._write = device.read, device.submit, device.write
        a = device.adapter
        self.adapter = Adapter(
            name=a.name,
            software=bool(a.software),
            features=frozenset(a.features),
            storage_buffers=int(a.storageBuffers),
            buffer_bytes=int(a.bufferBytes),
            binding_bytes=int(a.bindingBytes),
            workgroups=int(a.workgroups),
            invocations=int(a.invocations),
            shared_bytes=int(a.sharedBytes),
            subgroup=int(a.subgroup),
        )

    def _do(self, call: Any, *args: Any) -> None:
        try:
            call(*args)
        except JsException as e:
            raise _error(e) from e

    @property
    def lost(self) -> str:
        return str(self._device.lost)

    @property
    def counters(self) -> WebGPUCounters:
        c = self._device.counters
        return WebGPUCounters(c.buffers, c.pipelines, c.bindGroups, c.submits, c.dispatches, c.reads)

    # --- buffers

    def create_buffer(self, nbytes: int) -> int:
        number = next(numbers)
        try:
            made = self._device.createBuffer(number, nbytes)
        except JsException as e:
            raise _error(e) from e
        if made is None:
            return number
        if hasattr(made, "then"):
            if not can_run_sync():
                self._device.reportBuffer(nbytes, made)
                return number
            made = run_sync(made)
        if not made:
            self._device.destroyBuffer(number)
            raise OutOfMemoryError(f"allocate {nbytes} bytes: no room on the GPU: free tensors")
        return number

    def destroy_buffer(self, buffer: int) -> None:
        self._device.destroyBuffer(buffer)

    def write(self, buffer: int, offset: int, data: memoryview) -> None:
        self._do(self._write, buffer, offset, to_js(data))

    def read(self, buffer: int, offset: int, nbytes: int) -> memoryview:
        if not self._device.synchronous:
            _check_suspends("a read")
        return _bytes(_result(self._read, (buffer, offset, nbytes), "a read"))

    async def read_async(self, buffer: int, offset: int, nbytes: int) -> memoryview:
        try:
            found = self._read(buffer, offset, nbytes)
            return _bytes(await found if hasattr(found, "then") else found)
        except JsException as e:
            raise _error(e) from e

    # --- pipelines

    def compile(self, sources: Sequence[KernelSource]) -> list[int]:
        """Nobody waits here: in a page the next read tells of a kernel that is not accepted."""
        given_numbers = [next(numbers) for _ in sources]  # one after the other: nothing comes between
        given = to_js(
            [{"name": s.name, "text": s.text, "buffers": s.n_buffers} for s in sources],
            dict_converter=Object.fromEntries,
        )
        self._do(self._device.compile, given_numbers[0], given)
        return given_numbers

    def drop_pipeline(self, pipeline: int) -> None:
        self._device.dropPipeline(pipeline)

    # --- steps

    def prepare(self, steps: Sequence[Step]) -> int:
        words = array(WORD)
        for step in steps:
            if isinstance(step, Copy):
                words.append(_COPY)
                ranges: tuple[Range, ...] = (step.source, step.target)
            else:
                ranges = (*step.bindings, step.uniform)
                words.extend((_DISPATCH, step.pipeline, step.grid, len(ranges)))
            for r in ranges:
                words.extend((r.entry, r.offset, r.nbytes))
        number = next(numbers)
        self._do(self._device.prepare, number, _words(words))
        return number

    def drop(self, commands: int) -> None:
        self._device.drop(commands)

    def submit(self, commands: int, table: array[int], grids: array[int]) -> None:
        self._do(self._submit, commands, _words(table), _words(grids))

    def submit_again(self, commands: int) -> None:
        try:
            self._submit(commands)
        except JsException as e:
            raise _error(e) from e

    def measure(self, commands: int, table: array[int], grids: array[int]) -> float:
        if not self._device.synchronous:
            _check_suspends("a measurement")
        args = (commands, _words(table), _words(grids))
        return float(_result(self._device.measure, args, "a measurement"))

    def close(self) -> None:
        self._device.close()


def _bytes(found: Any) -> memoryview:
    return memoryview(bytearray(found.to_bytes()))
