"""CUDA: `device.py` runs Programs on `host.py`, a small interface to a driver. `native.py` implements it with
`cuda-bindings`.

Kernels are CUDA C++, which NVRTC compiles (`renderer/cstyle/cuda_compile.py`), all kernels of a Program at
once; results are cached on disk. An NVRTC that is older than the GPU emits PTX.

NVRTC before 13.4 has a fault: where a branch says that `i` is 0, `(i + 1) % 2` times a number that is no
power of two is 0. `codegen/lower/workgroup_memory.py` avoids that expression.

- *Streams.* Written data goes through pinned memory on a separate stream, so a batch arrives while the
  previous step is computed. A write waits for the last run that used the memory, a run for the writes
  before it. Only a read makes the processor wait.
- *Graphs.* A Program's first run launches kernel by kernel. Its second makes a graph of the calls; from
  then on a run is one `cuGraphLaunch`, and nodes whose buffer or Variable changed are updated.
- *Times* are measured by events on the stream.
- *Errors.* Freed memory is kept in size classes, and given back before OutOfMemoryError is raised. A
  refused launch is a DeviceError, and later launches work. After an illegal address the context is lost:
  each further call is a DeviceError, and `Device["CUDA"]` opens another.

**Without a GPU.** `tests/gpu_emulation/libcuda.cpp` is a driver built with NVIDIA's own `cuda.h`. Its
streams are lists of work, and one of them can be delayed, so a missing wait makes results wrong. In checked
mode the compiler instruments each access: out-of-bounds accesses, uninitialised shared memory, races and
divergent barriers are errors that name byte, invocation and workgroup. Times, and a real driver's behaviour
after errors, cannot be tested in this way.
"""
