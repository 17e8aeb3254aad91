"""Products of matrices of words (MATMUL)."""

from __future__ import annotations

from polygrad.helpers import prod
from polygrad.renderer.addresses import addresses_of
from polygrad.renderer.builder import Matrix
from polygrad.renderer.tiles import Tiles
from polygrad.uop.node import UOp


def emit_matmul(tiles: Tiles, store: UOp) -> None:
    """Write the product that a STORE puts in memory."""
    index, product = store.src
    left, right, words = product.src
    (rows,) = (r for r in tiles.axes[left] if r is not words)
    vectors = prod(r.src[0].arg for r in tiles.axes[right] if r is not words)

    def matrix(place: UOp, down: UOp) -> Matrix:
        (start,) = addresses_of(tiles, place, (), frozenset(tiles.axes[place]))
        return Matrix(start, dict(place.arg.steps)[down])

    c, a, b = matrix(index, rows), matrix(left, rows), matrix(right, words)
    size = (rows.src[0].arg, vectors * tiles.lanes, words.src[0].arg)
    tiles.builder.matmul(product.arg, c, a, b, size)
