"""Captured functions: TinyJit, compile_step, and files of exported steps.

During a capture `realize` records Programs instead of running them (`engine/recording.py`). Nothing touches
memory before the capture is complete, so a capture that fails can be run as an ordinary call. `merge.py`
makes one Program of the recorded ones. A buffer is identified by its `Allocation`. Memory that the capture
allocated and that no live Tensor needs is scratch, planned as a whole. Dead kernels are removed. With
`prune`, kernels that use neither arguments nor memory that other kernels write become a Program of their own,
which runs first, and again when its memory was written.

`link` of a backend adds the driver, one artefact that makes all launches. `capture.py` makes the recorded
call, `placeholders.py` replaces its arguments, `replay.py` is the captured step. `jit.py` and `step.py` are
the public classes. A node keeps its value, and a replay changes memory without making nodes. So stored values
get new BUFFER nodes when a capture starts, when it ends, and before a replay if any Program has run since the
last one.

A view is usually passed as a copy, so that each call can pass another batch of the same data. A view whose
memory the first call wrote to, or that shares memory with another argument, is passed as that memory, and has
to be the same view in each call. A captured step has its own counter for random numbers, which its last
kernel advances.

**Files** (`save.py`): the Program's bytes, whose buffers have names and shapes, then one safetensors file
with the weights. A reader compiles and plans nothing. Steps that need Python at a run cannot be saved: those
with guards, views of a result, or sizes other than a Variable.

**Symbolic sizes**: a result of symbolic shape is stored with the strides of the run. After a replay, `rebind`
gives Tensors over it the values of that run.
"""
