"""The IR: one immutable, hash-consed node type from the tensor graph to the linear kernel.

The intern table (`intern.py`) owns the nodes. A collection drops the nodes that only the table holds, while
it still holds their sources, so freeing a chain of any depth never recurses (inside a page the C stack is
small). For the same reason no walk over a graph recurses. Collections are generational: the table is in
order of age. After 1,024 new nodes, or 256 KB of new buffers that are a quarter of what is live, a
realization takes the young nodes off the table's end, newest first, puts back those that live, and sweeps a
slice of the old ones. So a collection looks at a few nodes for each new one. A BUFFER is not interned: it
has no sources, and its memory is freed with its last reference. Running out of memory collects everything.

`UOp.value` is the BUFFER of a node that was computed. A CONST of shape () goes with any shape, so constants
are not expanded. Movement nodes are kept as made, because a gradient may be asked for any of them; the
scheduler merges them. Integer bounds are computed when a node is made.

`dtypes.index` never overflows and is the target's machine integer. IDIV and MOD are floor division in every
dtype, which makes their algebra exact. User integers wrap, and only rules that hold under wrap-around fire
on them. A number is rounded to a float dtype in one place, `polygrad/dtype.py`, for constants, folding,
renderers and Python data; INTERP, the judge, has a rounding of its own.

`symbolic.py` is the algebra, `spec.py` what is legal at each stage, `printer.py` and `parser.py` the text
form, `sizes.py` the canonical form of symbolic sizes, `linear.py` linear combinations, `for_loop.py` loops
over whole graphs, `tensor_cores.py` the table of matrix instructions.

**FOR nodes.** A matrix decomposition is a fixed number of equal steps: finished rows and columns move to
the end, so the next pivot is always in the first row and column. A FOR node has the initial values as
sources; its argument is the number of trips and a body, a graph in which a PARAM under a RESHAPE stands for
the current value of a source. The body is scheduled once. `schedule/for_loops.py` lists its kernels once
for each trip, with memory of the trip's own, so nothing behind the scheduler knows loops, and compile time
does not depend on the matrix's size.
"""
