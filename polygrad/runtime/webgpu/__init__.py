"""WEBGPU: `device.py` runs Programs on a small host interface. `native.py` implements it with the package
`wgpu`, `js.py` with TypeScript (`wasm_runtime/src/webgpu`).

**Memory**: each allocation is a GPUBuffer, with four size classes for each power of two, so that freed
buffers are reused. Scratch buffers are ranges of one GPUBuffer, at multiples of 256. All bindings are
`read_write`, because a dispatch may not use one buffer with two access modes. Ranges may not overlap either:
if two arguments are the same memory, the one that a kernel only reads is copied before its launch. A kernel
has as many buffers as the adapter allows (8 to 32).

**A Program is a list of steps**, recorded and submitted at once. Command buffers can be used only once, so
the list is recorded again for each run: 100 dispatches take 50 µs in a page. Pipelines, layouts and bind
groups are made once. Constants and Variables are in one uniform buffer. Pipelines are compiled together; the
next read reports an error of a kernel, with the line of the WGSL.

**Reads wait.** wgpu-native blocks. In Node the GPU is in a worker, and this thread sleeps until it answers.
In a page Python is suspended (JSPI). That works if JavaScript entered Python by a call that can be suspended:
`runPythonAsync`, `callPromising`, scripts that the loaders run, reads of the JavaScript API. Elsewhere a
read is a DeviceError, and `await t.data_async()` works. While a read waits, other tasks may run Python; the
copy of the data was enqueued at the call.

**Subgroups.** WGSL does not say which invocations share a subgroup. `probes.py` asks the adapter when the
device opens. `Kernel.subgroup` is the size that a kernel was compiled for; adapters with another size refuse
it.

**Times** are measured by the GPU, if the adapter has timestamp queries.

**Loss.** If the device is lost, each call raises DeviceError; `Device["WEBGPU"]` opens another. Handles are
unique across devices. `device="auto"` opens the GPU, and prefers it to the host's default if it is hardware.
"""
