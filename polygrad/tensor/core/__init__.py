"""What the methods of Tensor share, and what is no method.

`base` has the slots, promotion and broadcasting; `TensorLike` is what stands where a Tensor may.
`operators` makes `x + y`, `y + x` and `x += y` of one method. `convert` reads Python data, `formatting` is
`repr`, `generator` the state of random numbers, `argument_errors` explains a method's failure from its
arguments, once it failed. `argument_names` has second names (`dim` for `axis`), `checks` and `index_checks`
make errors of what a device finds wrong, `sizes` decides on symbolic sizes. Algorithms: `contraction`,
`rearrange`, `sorting_network`, `binary_search`.

**Aliasing** (`aliasing.py`) is torch's rule, whatever is lazy. A `Storage` is memory, or a lazy value that
may become memory. Tensors that are movement ops (also same-size bitcasts, `detach`, `contiguous` of what is
contiguous) over it share it. A write through one of them makes the Storage's next version, and every live
view is put on top of that. A computed value keeps the nodes of the version it was made of.
`Allocation.version` counts writes, so reading a node that says what memory held before is an error, never
the new contents. A write into a view that shows an element twice is an ArgumentError. A captured step obeys
the same rules.

**Leaves** (`leaves.py`). A leaf is DETACH with a Leaf as its argument, on top of the Tensor's node, so each
version of its value that was used has one. A DETACH without an argument is a cut, which is also what
`no_grad` puts on results. `backward` marks the live results that it went through as SPENT. Before memory is
overwritten, BUFFERs in graphs that may still be differentiated get a copy of their elements, in the Program
of the write. A spent value whose memory was overwritten becomes FREED: its value without its graph, and an
error for a gradient. Tensors with `requires_grad=None` follow tinygrad: they are leaves where they are in a
graph, and their results are data once they are computed.

**Gradients of one's own.** A NOOP with further sources and a rule as its argument is its first source, and
its gradient is what the rule says (`TensorBase._with_backward`). The scheduler sees the value alone.
`expm1`, `erfinv`, `lgamma`, the decompositions, `custom_gradient` and `checkpoint` are made of it. A
checkpoint's rule differentiates a copy of its graph in which the inputs are multiplied by a 1 that is
computed from memory and the gradient, so the copy is neither folded nor found computed.

**Sorting** (`sorting_network.py`) is a graph like any other. What a mask selects goes to where a prefix sum
of it says, by a scatter; of `masked_select`, `nonzero` and `unique` only the count is read, and results are
the first elements of memory for all, so kernels are the same whatever the count is.

**vmap** (`tensor/batching.py`) calls the function on Tensors over memory that is nowhere, and gives the
graph that it made one more axis, by a table of rules.
"""
