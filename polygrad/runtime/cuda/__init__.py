"""CUDA: `device.py` runs Programs on `host.py`, a small interface to a driver, which `native.py` is on
`cuda-bindings`.

Kernels are CUDA C++, which NVRTC compiles (`renderer/cstyle/cuda_compile.py`), those of a Program together,
kept on disk. Where an NVRTC is older than the GPU, it gives PTX.

- *Streams.* Written data goes through pinned memory on a stream of its own, so a batch arrives while the
  step before it is computed. A write waits for the last run that used the memory, a run for what was
  written before. Nothing but a read makes the processor wait.
- *Graphs.* A Program's first run launches kernel by kernel. Its second makes a graph of the calls; from
  then on a run is one `cuGraphLaunch`, and nodes whose buffer or Variable changed are updated.
- *Times* are those of events on the stream.
- *Errors.* Freed memory is kept in size classes, and given back before OutOfMemoryError is raised. A
  refused launch is a DeviceError, after which others run. After an illegal address the context is lost:
  each further call is a DeviceError, and `Device["CUDA"]` opens another.

**Without a GPU.** `tests/gpu_emulation/libcuda.cpp` is a driver built with NVIDIA's own `cuda.h`. Its
streams are lists of work, and one of them can be late, so a missing wait shows in what is computed. A
checked machine has the compiler call a function before each access: out of bounds, uninitialised shared
memory, races and divergent barriers are errors that name byte, invocation and workgroup. Times, and a real
driver's behaviour under errors, cannot be shown that way.
"""
