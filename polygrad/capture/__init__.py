"""Captured functions: TinyJit, compile_step, and files of exported steps.

While `engine/recording.py` watches, `realize` writes Programs down instead of running them: nothing touches
memory until all is known, so a capture that fails can be carried out as an ordinary call. `merge.py` makes
them one Program. A buffer is identified by its `Allocation`. What the capture allocated and no live Tensor
needs is scratch, planned as a whole; dead kernels are removed. With `prune`, kernels that touch nothing
that is an argument, or that other kernels write, become a Program of their own, which runs first, and again
when its memory was written.

`link` of a backend adds the driver, one artefact that makes all launches. `capture.py` is the call,
`placeholders.py` its arguments, `replay.py` the captured step; `jit.py` and `step.py` are the public
classes. A node's value is remembered on the node, but a replay changes memory without making nodes: so
stored values get new BUFFER nodes when a capture starts, when it ends, and before a replay if any Program
has run since the last one.

A view that is passed alone is passed as a copy, so that each call may pass another batch of the same data.
One whose memory the first call wrote to, or that several arguments share, is passed as that memory and has
to be the same view in each call. A captured step has a counter of its own for random numbers, which its
last kernel advances.

**Files** (`save.py`): the Program's bytes, whose buffers have names and shapes, then one safetensors file
with the weights. Nothing is compiled or planned again by a reader. What only Python could do at a run is
refused when the step is saved: guards, views of a result, sizes other than a Variable.

**Symbolic sizes**: a result of symbolic shape is stored with the strides of the run, so after a replay
`rebind` gives Tensors over it that run's values.
"""
