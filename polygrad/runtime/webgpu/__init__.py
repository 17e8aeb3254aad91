"""WEBGPU: `device.py` runs Programs on a small host interface, which `native.py` is on the package `wgpu`
and `js.py` on TypeScript (`wasm_runtime/src/webgpu`).

**Memory** is a GPUBuffer an allocation, in four sizes to a power of two, so that freed ones are used again.
Scratch is ranges of one buffer, at multiples of 256. All bindings are `read_write`, because a dispatch may
not use one buffer under two access modes. Ranges may not overlap either: where two arguments are the same
memory, the one that a kernel only reads is copied before its launch. A kernel has as many buffers as the
adapter allows (8 to 32).

**A Program is a list of steps**, recorded and submitted at once. Command buffers are used once, so it is
recorded anew for each run: 100 dispatches take 50 µs in a page. Pipelines, layouts and bind groups are made
once. Constants and Variables are in one uniform buffer. Pipelines are compiled together; the next read
reports an error of a kernel, with the line of the WGSL.

**Reads wait.** wgpu-native blocks. In Node the GPU is in a worker, and this thread sleeps until it answers.
In a page Python is suspended (JSPI), which works where JavaScript entered Python by a call that can wait:
`runPythonAsync`, `callPromising`, scripts that the loaders run, reads of the JavaScript API. Elsewhere a
read is a DeviceError, and `await t.data_async()` works. While a read waits, other tasks may run Python: the
data was copied when it was asked for.

**Subgroups.** WGSL does not say which invocations share a subgroup. `probes.py` asks the adapter when the
device opens. `Kernel.subgroup` says the size that a kernel was made for; adapters with another size refuse
it.

**Times** are the GPU's own, where the adapter has timestamp queries.

**Loss.** A lost device makes each call a DeviceError; `Device["WEBGPU"]` opens another. Handles are numbers
that no two devices share. `device="auto"` opens the GPU and prefers it to the host's default if it is
hardware.
"""
