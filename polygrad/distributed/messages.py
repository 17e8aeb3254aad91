"""JSON between ranks: small things, as names and hashes."""

from __future__ import annotations

import json
from typing import Any

from polygrad.distributed.group import Group, group


def all_gather_json(value: Any, label: str = "all_gather_json", timeout: float | None = None) -> list[Any]:
    """The value of each rank, of what JSON can hold. `timeout`: seconds to wait for other ranks, by default
    that of `init`. Raises RankError."""
    ranks = group()
    if ranks.engine.size == 1:
        return [json.loads(json.dumps(value))]
    return [json.loads(text) for text in _gather(ranks, json.dumps(value).encode(), label, timeout)]


def broadcast_json(value: Any, root: int = 0) -> Any:
    """The value of the rank `root`. Raises RankError."""
    own = value if group().engine.rank == root else None
    return all_gather_json(own, "broadcast_json")[root]


def _gather(ranks: Group, data: bytes, label: str, timeout: float | None) -> list[bytes]:
    """The bytes of each rank: their lengths first, then all of them, padded to the longest."""
    import numpy as np

    count = ranks.engine.size
    lengths = np.zeros(count, np.int64)
    own = np.array([len(data)], np.int64)
    ranks.run(label, lambda: ranks.engine.all_gather(own, lengths), timeout)
    longest = max(int(lengths.max()), 1)
    padded = np.frombuffer(data.ljust(longest, b"\0"), np.uint8).copy()
    out = np.zeros(count * longest, np.uint8)
    ranks.run(label, lambda: ranks.engine.all_gather(padded, out), timeout)
    return [bytes(out[i * longest : i * longest + int(n)]) for i, n in enumerate(lengths)]
