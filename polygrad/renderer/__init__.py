"""From a linear kernel to code.

`emit.py` writes the nodes in order, a whole tile of values for each (`tile_axes.py`, `tiles.py`). Values with
one reader in the same block are written when the reader needs them (`deferral.py`). So a 6 x 2 tile takes 12
sums, 2 vectors and 1 splat: the 15 registers that V8 has. Nodes that compute are in `arithmetic.py` and
`wmma.py`, those that go to memory in `loads.py`, `stores.py` and `copies.py`. A `Builder` (`builder.py`)
writes one function of one language. It knows instructions, not axes.

Source text is made in three layers. `source_text.py` keeps a list of expressions and statements. An
expression that is used once becomes part of its use, if nothing in between writes to the memory that it
reads. `cstyle/base.py` is a Builder on top of it. Each language is a child of that Builder.

Multiply-adds are fused in sums of products and in polynomials only. Scalars fuse where SIMD values do
(`Target.scalar_fma`), so an elementwise expression has the same bits in every kernel.
"""
