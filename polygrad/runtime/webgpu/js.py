"""WebGPU of the page or of Node as a `WebGPUHost`, for Pyodide: a thin wrapper of the TypeScript class
`WebGPUDevice`.

`page_host.py` says where the function that opens it comes from. Only reads and the opening of the device
wait. In Node the GPU is in a worker, and this thread sleeps. In a page Python is suspended, so JavaScript
must have entered Python by a call that can be suspended.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from js import Object
from pyodide.ffi import JsException, can_run_sync, run_sync, to_js

from polygrad.errors import CompileError, DeviceError, InternalError, OutOfMemoryError
from polygrad.runtime.gpu import KernelSource
from polygrad.runtime.page_host import page_host
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

_DISPATCH, _COPY = 0, 1  # kinds of steps, as in `wasm_runtime/src/webgpu/steps.ts`
_ERRORS: dict[str, type[Exception]] = {
    "CompileError": CompileError,
    "DeviceError": DeviceError,
    "OutOfMemoryError": OutOfMemoryError,
}


def open_host() -> JsWebGPUHost:
    """Open the best adapter. Raises DeviceError when there is none."""
    device = _result(page_host().openGpu, (), "open the GPU")
    if device is None:
        raise DeviceError(
            "device WEBGPU: no GPU adapter was found: use a browser with WebGPU, on a page served by "
            'https or from localhost; in Node, npm install webgpu and a driver; or device="WASM"'
        )
    return JsWebGPUHost(device)


def _result(call: Any, args: tuple[Any, ...], what: str) -> Any:
    """The result of a method, or of the promise that it returns."""
    try:
        result = call(*args)
        return _wait(result, what) if hasattr(result, "then") else result
    except JsException as e:
        raise _error(e) from e


def _wait(promise: Any, what: str) -> Any:
    _check_suspends(what)
    return run_sync(promise)


def _check_suspends(what: str) -> None:
    """Raises DeviceError where Python cannot be suspended."""
    if not can_run_sync():
        raise DeviceError(
            f"device WEBGPU: {what} has to wait for the GPU, and JavaScript called Python "
            "synchronously: call Python by runPythonAsync or f.callPromising(), in an engine that "
            "can suspend it (JSPI: Chrome 137, Firefox 153, Safari 27, Node 24), or read by "
            "`await t.data_async()`"
        )


def _error(e: JsException) -> Exception:
    return _ERRORS.get(e.name, InternalError)(e.message)


def _words(words: array[int]) -> Any:
    return to_js(words)


class JsWebGPUHost(WebGPUHost):
    """A `WebGPUDevice`, or in Node a proxy that sends the same calls to one."""

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
            result = self._device.createBuffer(number, nbytes)
        except JsException as e:
            raise _error(e) from e
        if result is None:
            return number
        if hasattr(result, "then"):
            if not can_run_sync():
                self._device.reportBuffer(nbytes, result)
                return number
            result = run_sync(result)
        if not result:
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
            contents = self._read(buffer, offset, nbytes)
            return _bytes(await contents if hasattr(contents, "then") else contents)
        except JsException as e:
            raise _error(e) from e

    # --- pipelines

    def compile(self, sources: Sequence[KernelSource]) -> list[int]:
        """Does not wait: in a page the next read reports kernels that were rejected."""
        given_numbers = [next(numbers) for _ in sources]  # consecutive: no other task runs meanwhile
        js_sources = to_js(
            [{"name": s.name, "text": s.text, "buffers": s.n_buffers} for s in sources],
            dict_converter=Object.fromEntries,
        )
        self._do(self._device.compile, given_numbers[0], js_sources)
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

    def resubmit(self, commands: int) -> None:
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


def _bytes(contents: Any) -> memoryview:
    return memoryview(bytearray(contents.to_bytes()))
