"""From a linear kernel to code.

`emit.py` goes node by node, a whole tile each, but a value with one reader in the same block is made when
that reader needs it: a 6 x 2 tile then needs 12 sums, 2 vectors and 1 splat, the 15 registers that V8 has.
A `Builder` (`builder.py`) writes one function of one language. It knows instructions, not axes.

Source text is made in three layers. `source_text.py` keeps a list of expressions and statements: an
expression that is used once becomes part of its use, if nothing between writes what it reads.
`cstyle/base.py` is a Builder on top of it. A child has what languages differ in.

Multiply-adds fuse only where a sum takes in a product, and in polynomials, where scalars fuse as lanes do
(`Target.scalar_fma`): so an elementwise expression has the same bits in every kernel.
"""
