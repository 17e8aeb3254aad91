"""What the methods of Tensor share, and the parts of Tensor that are not methods.

`base` has the slots, promotion and broadcasting; `TensorLike` is the type of operands.
`operators` derives `x + y`, `y + x` and `x += y` from one method. `convert` reads Python data, `formatting`
implements `repr`, `generator` has the state of random numbers. `argument_errors` explains a failed call by
its arguments. `argument_names` has second names (`dim` for `axis`). `checks` and `index_checks` turn faults
that a device detects into errors. `sizes` decides on symbolic sizes. Algorithms: `contraction`, `rearrange`,
`sorting_network`, `radix_sort`, `binary_search`.

**Aliasing** (`aliasing.py`) follows torch's rule, for lazy values too. A `Storage` is memory, or a lazy value
that may become memory. Tensors that are movement ops (or same-size bitcasts, `detach`, `contiguous` of a
contiguous Tensor) over it share it. A write through one of them makes the Storage's next version, and every
live view is rebuilt on top of that. A computed value keeps the nodes of the version that it was computed
from. `Allocation.version` counts writes, so reading a node of an older version is an error; it never yields
the new contents. A write into a view that shows an element twice is an ArgumentError. A captured step obeys
the same rules.

**Leaves** (`leaves.py`). A leaf is a DETACH with a Leaf as its argument, on top of the Tensor's node; each
version of its value that was used has one. A DETACH without an argument cuts gradients; `no_grad` puts one on
its results. `backward` marks the live results that it visited as SPENT. Before memory is overwritten, BUFFERs
in graphs that may still be differentiated get a copy of their elements, in the Program of the write. A spent
value whose memory was overwritten becomes FREED: it keeps its value and loses its graph, and a gradient
through it is an error. Tensors with `requires_grad=None` follow tinygrad: they are leaves where they are in a
graph, and their results are data once they are computed.

**Custom gradients.** A NOOP with further sources and a rule as its argument has the value of its first source
and the gradient that the rule computes (`TensorBase._with_backward`). The scheduler sees the value alone.
`expm1`, `erfinv`, `lgamma`, the decompositions, `custom_gradient` and `checkpoint` use it. A checkpoint's
rule differentiates a copy of its graph. The inputs of the copy are multiplied by a 1 that is computed from
memory and from the gradient, so that the copy is neither folded nor replaced by the value computed before.

**Sorting** (`sorting_network.py`, `radix_sort.py`) is an ordinary graph. Elements that a mask selects are
scattered to the positions that a prefix sum of the mask gives. `masked_select`, `nonzero` and `unique` read
only the count. Their results are the first elements of memory that has room for all, so the kernels do not
depend on the count.

**vmap** (`tensor/batching.py`) calls the function on placeholders, and adds a batch axis to the graph that it
made, by a table of rules.
"""
