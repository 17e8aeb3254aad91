"""Tensors that share memory, and how a write through one of them reaches the others.

A `Storage` is memory, lazy or not: the newest version of a value of which some Tensors are views. A view is a
chain of movement ops (and DETACH, CONTIGUOUS, BITCAST to a dtype of the same size) over the storage's node. A
write makes the next version of that node, and the chains of all live Tensors of the storage are put on top of
it. Values computed from an older version keep its nodes, and so do not change.

The rules of aliasing are torch's, and so are the names.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from polygrad.dtype import dtypes
from polygrad.engine.normalize import is_uncomputed, value_of, with_sizes
from polygrad.engine.realize import collect_garbage, realize
from polygrad.engine.recording import Recording, watch
from polygrad.engine.sharding import check_writable
from polygrad.errors import ArgumentError, CaptureError, InternalError
from polygrad.gradient import scatter_into_base
from polygrad.helpers import caller, set_all
from polygrad.monitor import computing
from polygrad.runtime.buffer import Allocation, Buffer
from polygrad.tensor.core.modes import modes
from polygrad.tensor.core.registry import changes, live_tensors
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.shapes import Shape

# The ops of views that are not movement ops: they move no element. CONTIGUOUS counts over lazy values only,
# which are contiguous once they are stored.
_ELEMENTS_STAY = frozenset({Ops.DETACH, Ops.CONTIGUOUS, Ops.BITCAST})
# PAD occurs in views because strided views and diagonals are padded, reshaped to rows and shrunk again. A pad
# that the user asks for makes a value (`_with`).
_VIEWS = GroupOp.Movement | _ELEMENTS_STAY


R = TypeVar("R")


class Storage:
    """Memory that some Tensors share. `node`: its newest version."""

    __slots__ = ("__weakref__", "_limit", "_tensors", "node")

    def __init__(self, node: UOp) -> None:
        self.node = node
        self._tensors: list[weakref.ref[Any]] = []
        self._limit = 8

    def add(self, tensor: Any) -> None:
        """Add `tensor`, a view of `node`, to those that writes update."""
        tensor._storage = self
        self._tensors.append(weakref.ref(tensor))
        if len(self._tensors) > self._limit:
            self.tensors()
            self._limit = 2 * len(self._tensors) + 8

    def tensors(self) -> list[Any]:
        """The live Tensors that are views of it. Forgets the others."""
        tensors = {id(t): t for r in self._tensors if (t := r()) is not None}
        if len(tensors) < len(self._tensors):  # some are dead, or are in it twice
            self._tensors = [weakref.ref(t) for t in tensors.values()]
        return [t for t in tensors.values() if t._storage is self]

    def is_shared(self) -> bool:
        """Whether several live Tensors are views of it."""
        first = None
        for reference in self._tensors:
            t = reference()
            if t is not None and t is not first and t._storage is self:
                if first is not None:
                    return True
                first = t
        return False

    def update(self, node: UOp) -> None:
        """Make `node`, with as many elements, the newest version."""
        tensors = self.tensors()
        uops = [t.uop for t in tensors]  # may bring them into a capture
        old, node = self.node, node.base
        if node is old:
            return
        new = node.reshape(old.shape)
        replacements, is_stored = {old: new}, memory_under(new) is not None
        nodes = [_rebase(uop, replacements, is_stored) for uop in uops]
        # one call, so that an exception of a signal's handler comes before all of them or after
        set_all([self, *tensors], ["node", *["uop"] * len(tensors)], [node, *nodes])


def storage_of(tensor: Any) -> Storage:
    """The Storage of a Tensor: that of the memory it is a view of, or a new one."""
    storage: Storage | None = tensor._storage
    if storage is not None:
        return storage
    memory = memory_under(tensor.uop)
    if memory is None:
        storage = Storage(lazy_root(tensor.uop))
    else:
        allocation: Allocation = memory.buffer.arg.allocation
        storage = owner_of(allocation)
        if storage is not None and storage.node is not memory:  # an older version, which is a value
            tensor._set_uop(as_value(tensor.uop))
            storage = Storage(lazy_root(tensor.uop))
        elif storage is None:
            storage = Storage(memory)
            set_owner(allocation, storage)
    storage.add(tensor)
    return storage


def live_values(since: int = 0) -> list[UOp]:
    """The nodes of live Tensors with serial numbers above `since`. For a view of a lazy value, the node of
    that value."""
    out = []
    for t in live_tensors(since):
        storage = t._storage
        if storage is None or storage.node.op in GroupOp.Memory or lazy_root(t.uop) is storage.node:
            out.append(t.uop)
        elif storage.is_shared():
            out.append(storage.node)
        else:  # no other view needs the remaining elements
            t._storage = None
            out.append(t.uop)
    return out


def set_owner(allocation: Allocation, storage: Storage) -> None:
    """Make `storage` the owner of the memory `allocation`."""
    allocation.owner = weakref.ref(storage)


def owner_of(allocation: Allocation) -> Storage | None:
    """The Storage that owns the memory `allocation`."""
    return allocation.owner() if allocation.owner is not None else None


def settle(storage: Storage) -> None:
    """Replace AFTER by BUFFER once the lazy writes were carried out, unless the written value may be
    differentiated."""
    value = value_of(storage.node) if storage.node.op is Ops.AFTER else None
    if value is not None and not is_derived(storage):
        storage.update(value)


def memory_under(uop: UOp) -> UOp | None:
    """The memory (BUFFER or AFTER) that a node is a view of; None for computed values."""
    while uop.op in _VIEWS and uop.op is not Ops.CONTIGUOUS:
        uop = uop.src[0]
    return uop if uop.op in GroupOp.Memory else None


def lazy_root(uop: UOp) -> UOp:
    """A node without RESHAPEs and without marks of leaves and spent values."""
    while uop.op is Ops.RESHAPE or (uop.op is Ops.DETACH and uop.arg is not None):
        uop = uop.src[0]
    return uop


def cut_gradient(uop: UOp) -> UOp:
    """`uop`, made under `no_grad`, with a DETACH that stops gradients."""
    if not uop.dtype.is_float or (uop.op is Ops.DETACH and uop.arg is None) or is_constant(uop):
        return uop
    for s in uop.src:
        if s.dtype.is_float and s.op is not Ops.CONST and (s.op is not Ops.DETACH or s.arg is not None):
            return uop.detach()
    return uop if uop.src else uop.detach()


def view_ops(uop: UOp) -> tuple[tuple[Ops, Any], ...]:
    """The ops that make a view of memory, with their arguments. Equal views have equal ops, whatever values
    their Variables are bound to."""

    def unbound(size: UOp) -> UOp:
        return size.substitute({n: n.src[0] for n in size.toposort() if n.op is Ops.BIND})

    ops = []
    while uop.op not in GroupOp.Memory:
        if uop.op is not Ops.DETACH:
            ops.append((uop.op, uop.dtype if uop.op is Ops.BITCAST else with_sizes(uop.op, uop.arg, unbound)))
        uop = uop.src[0]
    return tuple(ops)


# Is told of a write before it happens: its Storage, the Storage's live Tensors, and the value that the
# written one gets. Without a Storage, it is the gradient of the Tensors that gets the value. May raise.
WriteObserver = Callable[[Storage | None, Sequence[Any], UOp], None]


class _Observers(threading.local):
    """Those of this thread's `observe_writes` blocks, the innermost first."""

    of_blocks: tuple[WriteObserver, ...] = ()


_observers = _Observers()


@contextlib.contextmanager
def observe_writes(observer: WriteObserver) -> Iterator[None]:
    """`with observe_writes(observer):` `observer` is called before each write of this thread in the block,
    and before `backward` sets or adds to a gradient. If it raises, nothing is written. The observers of
    enclosing blocks are called too."""
    outer = _observers.of_blocks
    _observers.of_blocks = (observer, *outer)
    try:
        yield
    finally:
        _observers.of_blocks = outer


@contextlib.contextmanager
def watch_writes() -> Iterator[weakref.WeakSet[Storage]]:
    """`with watch_writes() as written:` the Storages that this thread writes to in the block."""
    written = weakref.WeakSet[Storage]()

    def observe(storage: Storage | None, tensors: Sequence[Any], value: UOp) -> None:
        if storage is not None:
            written.add(storage)

    with observe_writes(observe):
        yield written


def all_or_none(work: Callable[[], R]) -> R:
    """`work()`. If it raises, the writes that it has made are taken back, except for those that are carried
    out already."""
    before: dict[Storage, UOp] = {}

    def note(storage: Storage | None, tensors: Sequence[Any], value: UOp) -> None:
        if storage is not None:
            before.setdefault(storage, storage.node)

    try:
        with observe_writes(note):
            return work()
    except BaseException:
        for storage, node in before.items():
            if is_uncomputed(storage.node):
                storage.update(node)
        raise


def announce_write(storage: Storage | None, tensors: Sequence[Any], value: UOp) -> None:
    """Call the observers of a write that is about to happen."""
    for observer in _observers.of_blocks:
        observer(storage, tensors, value)


@computing
def write(tensor: Any, value: UOp, source: Any) -> None:
    """Write `value`, of the Tensor's shape and dtype, to its elements; all views of them see the write.
    `source`: the Tensor that `value` comes from.

    A write to stored memory is carried out in place when the Tensor is next computed; a lazy value is
    replaced. Raises ArgumentError when the Tensor shows an element of memory more than once.
    """
    if 0 in tensor.shape:
        return
    storage = storage_of(tensor)
    if _observers.of_blocks:
        announce_write(storage, storage.tensors(), value)
    settle(storage)
    if watch.recording is not None:
        _check_capture(storage, watch.recording)
    old = storage.node
    view_chain = _chain(tensor.uop, old)
    _check_distinct(view_chain, old)
    derived = bool(source.requires_grad) and modes.grad_enabled
    target, value = _write_target(
        view_chain, old, as_value(value if modes.grad_enabled else cut_gradient(value))
    )
    if old.op in GroupOp.Memory:
        check_writable(target)
        storage.update(target.assign(value))
        old.buffer.arg.allocation.written_at = caller()
    elif target.base is old:
        storage.update(_read_source_once(value, tensor.uop).reshape(old.shape))
    else:
        written_mask = scatter_into_base(target, old, target.const_like(True, dtypes.bool))
        merged = UOp(Ops.WHERE, old.dtype, (written_mask, scatter_into_base(target, old, value), old))
        storage.update(_read_source_once(merged, old))
    changes.count += 1
    for view in storage.tensors():
        view._device = view._device or source._device
        if derived and not view.requires_grad and not _is_detached(view.uop, storage.node):
            view._requires_grad = view._derived = True


def rename(storage: Storage, contents_change: bool = False) -> None:
    """Give a Storage's memory a new node, so that values computed from the old one are not reused.
    `contents_change`: the contents change without a node that records it."""
    if is_uncomputed(storage.node) and storage.node.op is Ops.AFTER:
        _store([storage], [], None)
    buffer: Buffer = storage.node.buffer.arg
    if contents_change:
        buffer.allocation.version += 1
    storage.update(UOp.buffer_of(buffer.alias(), storage.node.dtype))


def has_symbolic_views(storage: Storage) -> bool:
    """Whether a Tensor of a Storage has a size that depends on a Variable."""
    return any(not isinstance(n, int) for t in storage.tensors() for n in t.shape)


def rebind(storage: Storage, values: dict[str, int]) -> None:
    """Bind the Variables in the sizes of a Storage's views to the values that determine its memory layout."""

    def bound(size: UOp) -> UOp:
        binds = [n for n in size.toposort() if n.op is Ops.BIND and n.src[0].arg.name in values]
        return size.substitute({n: n.src[0].bind(values[n.src[0].arg.name]) for n in binds})

    for t in storage.tensors():
        uop = storage.node
        for node in _chain(t.uop, storage.node):
            uop = UOp(node.op, node.dtype, (uop,), with_sizes(node.op, node.arg, bound))
        t.uop = uop


@computing
def realize_tensors(tensors: Iterable[Any]) -> None:
    """Compute Tensors in one Program. Lazy values get memory, and lazy writes are carried out. A view of a
    lazy value that other Tensors share is computed and stays a view."""
    storages: dict[Storage, None] = {}
    values: list[tuple[UOp, str | None]] = []
    for t in tensors:
        if 0 in t.shape:
            continue
        if memory_under(t.uop) is None and t._storage is not None and not is_whole(t):
            if t._storage.is_shared():
                if not is_constant(t.uop):
                    values.append((t.uop, t._device))
                continue
            t._storage = None  # no other view needs the remaining elements
        storages[storage_of(t)] = None
    lazy = [s for s in storages if s.node.op is not Ops.BUFFER]
    if len(lazy) == 1 and not values:
        _store(lazy, [], device_of(lazy[0]))
    else:
        by_device: dict[str | None, tuple[list[Storage], list[UOp]]] = {}
        for storage in lazy:
            by_device.setdefault(device_of(storage), ([], []))[0].append(storage)
        for uop, device in values:
            by_device.setdefault(device, ([], []))[1].append(uop)
        for device, (todo, uops) in by_device.items():
            _store(todo, uops, device)
    collect_garbage()


def device_of(storage: Storage) -> Any:
    """The device of a Storage's value, or a tuple of several; None for a constant, which has no device."""
    for t in storage.tensors():
        if t._device is not None:
            return t._device
    return None


def is_derived(storage: Storage) -> bool:
    """Whether the value of a Storage may be differentiated through the graph that computed it."""
    return any(t.requires_grad and t._derived for t in storage.tensors())


def _store(todo: list[Storage], values: list[UOp], device: str | None) -> None:
    """Give lazy Storages memory, and compute values. `device`: where graphs of constants are computed."""
    # a constant is stored through a CONTIGUOUS, so that its own node does not hold a value
    roots = [s.node.clone() if is_constant(s.node) else s.node for s in todo]
    computed_values = realize([*roots, *values], device)
    copies: dict[Storage, UOp] = {}
    for storage, out in zip(todo, computed_values, strict=False):
        buffer: Buffer = out.base.arg
        allocation, derived = buffer.allocation, False
        for view in storage.tensors():
            view._device = buffer.device
            derived = derived or (view._derived and view.requires_grad)
        if derived:
            continue  # backward needs the graph; its node holds the value
        if owner_of(allocation) in (None, storage):
            set_owner(allocation, storage)
            storage.update(out.base)
        else:  # equal graphs are one node; each Storage needs memory of its own, as it may be written to
            copy = UOp.buffer_of(buffer.like(), out.dtype)
            copies[storage] = copy.assign(out.base)
    if copies:
        for storage, out in zip(copies, realize(list(copies.values())), strict=True):
            set_owner(out.arg.allocation, storage)
            storage.update(out)


def is_contiguous(tensor: Any) -> bool:
    """Whether a Tensor's elements lie in order and without gaps in memory, now or once they are stored."""
    if is_whole(tensor) or 0 in tensor.shape:
        return True
    root = storage_of(tensor).node
    shape: Shape = root.shape
    if not all(isinstance(n, int) for n in shape):
        return False
    strides = _row_major(shape)
    for node in _chain(tensor.uop, root):
        if node.op is Ops.PERMUTE:
            strides = [strides[axis] for axis in node.arg]
        elif node.op is Ops.RESHAPE and _are_row_major(shape, strides):
            strides = _row_major(node.shape)
        elif node.op is not Ops.SHRINK and node.op not in _ELEMENTS_STAY:
            return False
        shape = node.shape
        if not all(isinstance(n, int) for n in shape):
            return False
    return _are_row_major(shape, strides)


def _are_row_major(shape: Shape, strides: list[int]) -> bool:
    return all(n == 1 or a == b for n, a, b in zip(shape, strides, _row_major(shape), strict=True))


def _row_major(shape: Shape) -> list[int]:
    strides, stride = [], 1
    for n in reversed(shape):
        strides.append(stride)
        stride *= n
    return strides[::-1]


def is_constant(uop: UOp) -> bool:
    """Whether the node is a CONST or an ARANGE under movement ops and casts."""
    while uop.op in GroupOp.Movement or uop.op is Ops.CAST:
        uop = uop.src[0]
    return uop.op is Ops.CONST or uop.op is Ops.ARANGE


def _check_capture(storage: Storage, recording: Recording) -> None:
    """In every run, a captured write needs the contents that memory had in the capture or after the last run.

    Raises CaptureError where that does not hold.
    """
    if storage in recording.lazy_storages:
        raise CaptureError(
            f"captured function: expected to write to memory, got a lazy value of {storage.node.shape}: "
            "realize() it before the call (detach() it, if it was computed with a gradient)"
        )
    node = storage.node
    if storage not in recording.storages and node.op is Ops.BUFFER and node.arg.allocation.is_allocated:
        # the host's data, made in the call: each run writes to a copy of it
        storage.update(node.clone())


def as_value(uop: UOp) -> UOp:
    """`uop` as a computed value, which does not change when the memory under it is written."""
    return uop if memory_under(uop) is None else UOp(Ops.NOOP, uop.dtype, (uop,))


def is_view_of_memory(tensor: Any, uop: UOp) -> bool:
    """Whether `uop`, made of a Tensor, is a view of memory. The Storage is not consulted."""
    storage: Storage | None = tensor._storage
    while uop is not tensor.uop and uop.op in _VIEWS and uop.op is not Ops.CONTIGUOUS:
        uop = uop.src[0]
    if uop is tensor.uop and storage is not None:
        return storage.node.op in GroupOp.Memory
    return memory_under(uop) is not None


def is_whole(tensor: Any) -> bool:
    """Whether a Tensor has all elements of its memory or lazy value, in order."""
    root = tensor._storage.node if tensor._storage is not None else lazy_root(tensor.uop)
    uop = tensor.uop
    while uop is not root:
        if uop.op is not Ops.RESHAPE and uop.op is not Ops.DETACH and uop.op is not Ops.CONTIGUOUS:
            return False
        uop = uop.src[0]
    return True


def _chain(uop: UOp, root: UOp) -> list[UOp]:
    """The nodes of a view, beginning with the node on top of `root`."""
    out = []
    while uop is not root:
        if uop.op not in _VIEWS:
            raise InternalError(f"{uop.op} in a view")
        out.append(uop)
        uop = uop.src[0]
    return out[::-1]


def rebase(uop: UOp, old: UOp, new: UOp) -> UOp:
    """The same view of another version, of the same shape."""
    return _rebase(uop, {old: new}, memory_under(new) is not None)


def _rebase(uop: UOp, replacements: dict[UOp, UOp], is_stored: bool) -> UOp:
    """`rebase`, with nodes that were already replaced in `replacements`, to which new ones are added: views
    of views share most nodes. `is_stored`: the new version is in memory."""
    chain = []
    while uop not in replacements:
        if uop.op not in _VIEWS:
            raise InternalError(f"{uop.op} in a view")
        chain.append(uop)
        uop = uop.src[0]
    new = replacements[uop]
    for node in reversed(chain):
        if node.op is not Ops.CONTIGUOUS or not is_stored:
            new = UOp(node.op, node.dtype if node.op is Ops.BITCAST else new.dtype, (new,), node.arg)
        replacements[node] = new
    return new


def _is_detached(uop: UOp, root: UOp) -> bool:
    return any(node.op is Ops.DETACH for node in _chain(uop, root))


def _write_target(chain: list[UOp], root: UOp, value: UOp) -> tuple[UOp, UOp]:
    """A view, the nodes `chain` over `root`, as movement ops alone, and the value to write there so that the
    view becomes `value`."""
    target = root
    for node in chain:
        if node.op not in _ELEMENTS_STAY:
            target = UOp(node.op, target.dtype, (target,), node.arg)
    return target, value.bitcast(root.dtype)


def _read_source_once(merged_value: UOp, old_value: UOp) -> UOp:
    """`merged_value`, where(mask, new, `old_value`), with the source of a clone in the place of `old_value`:
    the merged value is in memory of its own anyway, so the copy is not needed."""
    if merged_value.op is not Ops.WHERE or merged_value.src[2] is not old_value:
        return merged_value
    source = old_value
    while source.op is Ops.RESHAPE or (source.op is Ops.CONTIGUOUS and source.arg is None):
        if not is_uncomputed(source):  # its source may have been overwritten since
            return merged_value
        source = source.src[0]
    return merged_value.replace(src=(*merged_value.src[:2], source.reshape(old_value.shape)))


def _check_distinct(chain: list[UOp], root: UOp) -> None:
    """Raises ArgumentError when a view, the nodes `chain` over `root`, shows an element more than once, as
    far as its ops tell."""
    if not any(node.op is Ops.EXPAND for node in chain):  # no other op repeats elements of an axis
        return
    repeated: list[bool] = [False] * root.ndim  # for each axis: whether elements repeat along it
    shape = root.shape
    for node in chain:
        out = node.shape
        if node.op is Ops.EXPAND:
            repeated = [r or not (a is b or a == b) for r, a, b in zip(repeated, shape, out, strict=True)]
        elif not any(repeated):
            repeated = [False] * len(out)
        elif node.op is Ops.PERMUTE:
            repeated = [repeated[axis] for axis in node.arg]
        elif node.op is Ops.SHRINK:
            repeated = [r and not _is_one(n) for r, n in zip(repeated, out, strict=True)]
        elif node.op is Ops.SHEAR and repeated[node.arg.along]:
            # each window starts a step after the one before it
            repeated[node.arg.along] = False
            repeated[node.arg.axis] |= abs(node.arg.step) < node.arg.size
        elif node.op is Ops.RESHAPE:
            repeated = _regroup(repeated, shape, out)
        shape = out
    if any(repeated):
        raise ArgumentError(
            f"write: expected a view that shows each element once, got shape {shape} in which elements "
            f"stand several times along axis {repeated.index(True)} (by expand, say): write to a clone()"
        )


def _regroup(repeated: list[bool], shape: Shape, out: Shape) -> list[bool]:
    """`repeated` after a reshape from `shape` to `out`: unchanged for equal leading and trailing axes; for
    the axes between, whether elements repeat along any of them."""
    axes = min(len(shape), len(out))
    front = next((i for i in range(axes) if shape[i] != out[i]), axes)
    behind = next((i for i in range(axes - front) if shape[-1 - i] != out[-1 - i]), axes - front)
    end, out_end = len(shape) - behind, len(out) - behind
    middle = any(repeated[front:end])
    return repeated[:front] + [middle and not _is_one(n) for n in out[front:out_end]] + repeated[end:]


def _is_one(n: Any) -> bool:
    return isinstance(n, int) and n == 1
