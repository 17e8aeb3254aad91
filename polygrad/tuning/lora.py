"""LoRA: a model of which only low-rank adapters of its Linear layers are trained (Hu et al., 2021).

Modules have the names that the checkpoint gives them, which are also PEFT's. Where the checkpoint joins
projections that are several layers here, their adapters share `lora_A`, and each has its rows of `lora_B`, so
they compute the same as PEFT's single adapter. On packed weights this is QLoRA (Dettmers et al., 2023).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from polygrad import nn
from polygrad.errors import ArgumentError
from polygrad.helpers import dedup
from polygrad.hf.instances import HFInstance
from polygrad.models.instance import Instance
from polygrad.models.low_rank import LowRankLinear, has_adapters, parts_of
from polygrad.models.names import Names
from polygrad.nn.parameter import parameter
from polygrad.tensor.tensor import Tensor

ALL = "all-linear"
_ATTENTION = (
    "q_proj",
    "v_proj",
)  # the default targets: queries and values, as in the paper
_HEADS = ("lm_head", "score", "classifier", "head")  # outputs of the whole model, which ALL leaves out


@dataclass(frozen=True)
class LoraConfig:
    """`rank`: of the adapters. `alpha`: they are scaled by alpha / rank, or, with `rank_stabilized`, by
    alpha / sqrt(rank) (Kalajdzievski, 2023). `dropout`: of their inputs, in training. Raises ArgumentError.
    """

    rank: int
    alpha: float
    dropout: float = 0.0
    rank_stabilized: bool = False

    def __post_init__(self) -> None:
        if type(self.rank) is not int or self.rank < 1:
            raise ArgumentError(f"rank: expected an int of at least 1, got {self.rank!r}")
        if not math.isfinite(self.alpha):
            raise ArgumentError(f"alpha: expected a finite number, got {self.alpha!r}")
        if not 0 <= self.dropout < 1:
            raise ArgumentError(f"dropout: expected a number from 0 on and below 1, got {self.dropout!r}")

    @property
    def scale(self) -> float:
        """The factor of the product of the two matrices."""
        return self.alpha / (math.sqrt(self.rank) if self.rank_stabilized else self.rank)


@dataclass(frozen=True)
class AdaptedLayer:
    """A Linear layer of the checkpoint's: `name`, and the layers here that it consists of, by path, in the
    order of its rows. `is_transposed`: the checkpoint keeps its weight as (in, out)."""

    name: str
    layers: tuple[tuple[str, Any], ...]
    is_transposed: bool

    @property
    def rows(self) -> tuple[int, ...]:
        """The output features of each layer."""
        return tuple(int(layer.weight.transpose().shape[1]) for _, layer in self.layers)

    @property
    def features(self) -> int:
        """The input features."""
        return int(self.layers[0][1].weight.transpose().shape[0])


class Adapters:
    """The adapters of a model, by the names that the checkpoint has for their modules.

    `trained`: weights of the model itself that are trained, too, by the checkpoint's names.
    """

    def __init__(
        self,
        model: Any,
        config: LoraConfig,
        places: Mapping[str, AdaptedLayer],
        trained: Mapping[str, Tensor],
    ) -> None:
        self.model, self.config, self.places, self.trained = model, config, dict(places), dict(trained)

    @property
    def parameters(self) -> list[Tensor]:
        """The Tensors that are trained, each once."""
        factors = [t for _, layer in self.layers for t in (layer.lora_A, layer.lora_B)]
        return dedup([*factors, *self.trained.values()])

    @property
    def layers(self) -> list[tuple[str, LowRankLinear]]:
        """The layers with adapters, by their paths in the model. Raises ArgumentError once merged."""
        parts: dict[str, Any] = dict(parts_of(module_of(self.model)))
        adapted = [(path, parts[path]) for place in self.places.values() for path, _ in place.layers]
        if not all(isinstance(layer, LowRankLinear) for _, layer in adapted):
            raise ArgumentError(
                "adapters: expected a model that has them, got one that they were merged into"
            )
        return adapted

    def weights(self) -> dict[str, Tensor]:
        """By name, lora_A (rank, in) and lora_B (out, rank) of each module of the checkpoint, and the model's
        own weights that are trained."""
        layers = dict(self.layers)
        out: dict[str, Tensor] = {}
        for name, place in self.places.items():
            adapted = [layers[path] for path, _ in place.layers]
            first, *others = [layer.lora_B.detach() for layer in adapted]
            out[f"{name}.lora_A.weight"] = adapted[0].lora_A.detach()
            out[f"{name}.lora_B.weight"] = first.cat(*others) if others else first
        return out | {name: t.detach() for name, t in self.trained.items()}

    def __repr__(self) -> str:
        count = sum(t.numel() for t in self.parameters)
        return f"<Adapters of {len(self.places)} modules, rank {self.config.rank}: {count:,} weights>"


def add_lora(
    model: Any,
    rank: int,
    alpha: float,
    targets: str | Iterable[str] | None = None,
    dropout: float = 0.0,
    rank_stabilized: bool = False,
    also_train: Iterable[str] = (),
) -> Adapters:
    """Give Linear layers of `model` adapters, and freeze all else. At first the model computes what it did.

    `model`: an Instance, or an object with `nn.Linear` layers. `targets`: modules by the names that the
    checkpoint has (PEFT's `target_modules`): whole, or their last parts; "all-linear": all but outputs of the
    whole model; None: those with the queries and values of attention. `dropout`: of the adapters' inputs.
    `also_train`: modules of the model that are trained as they are, a new classifier for example. Others are
    those of `LoraConfig`. Raises ArgumentError, also for a target that no layer has, and for a model that has
    adapters.

    >>> from polygrad import nn
    >>> class Model:
    ...     def __init__(self):
    ...         self.up, self.down = nn.Linear(4, 8), nn.Linear(8, 4)
    >>> add_lora(Model(), rank=2, alpha=4, targets=["up"])
    <Adapters of 1 modules, rank 2: 24 weights>
    """
    config = LoraConfig(rank, alpha, dropout, rank_stabilized)
    places = places_of(model)
    chosen = _choose_layers(places, targets)
    trained: dict[str, Tensor] = {}
    for target in also_train:
        weights = trained_weights(model, [target])
        if not weights:
            raise ArgumentError(f"also_train: no module of the model is called {target!r}")
        trained |= weights
    return attach(model, config, {name: places[name] for name in chosen}, trained)


def attach(
    model: Any, config: LoraConfig, places: Mapping[str, AdaptedLayer], trained: Mapping[str, Tensor]
) -> Adapters:
    """`add_lora` for these places and weights. lora_A starts uniform in ±1/sqrt(in), lora_B with 0."""
    module = module_of(model)
    if has_adapters(module):
        raise ArgumentError("add_lora: expected a model without adapters, got one with some: use merge first")
    for t in nn.state.get_parameters(module):
        if t.dtype.is_float:
            t.requires_grad = False
    for t in trained.values():
        t.requires_grad = True
    parents = dict(parts_of(module)) | {"": module}
    for place in places.values():
        bound = 1 / math.sqrt(place.features)
        device = _device(place)
        a = parameter(
            Tensor.uniform(config.rank, place.features, low=-bound, high=bound, device=device).realize()
        )
        for (path, layer), rows in zip(place.layers, place.rows):
            b = parameter(Tensor.zeros(rows, config.rank, device=device).contiguous().realize())
            _put(parents, path, LowRankLinear(layer, a, b, config.scale, config.dropout))
    _forget_captures(model)
    return Adapters(model, config, places, trained)


def merge(model: Any) -> Any:
    """Add the adapters to the weights of their layers, which become plain Linear layers; `model`.

    The sum is made in float32 and rounded to the weight's dtype; a packed weight becomes float32. All weights
    require gradients afterwards. Raises ArgumentError for a model without adapters.
    """
    module = module_of(model)
    parts = parts_of(module)
    layers = [(path, layer) for path, layer in parts if isinstance(layer, LowRankLinear)]
    if not layers:
        raise ArgumentError("merge: expected a model with adapters, got one without: add_lora gives it some")
    parents = dict(parts) | {"": module}
    with Tensor.no_grad():
        for path, layer in layers:
            _put(parents, path, layer.merged())
    for t in nn.state.get_parameters(module):
        if t.dtype.is_float:
            t.requires_grad = True
    _forget_captures(model)
    return model


def module_of(model: Any) -> Any:
    """The object with the Tensors: that of an Instance, or the model itself."""
    return model.module if isinstance(model, Instance) else model


def names_of(model: Any) -> Names:
    """The names that the checkpoint of a model has for its weights."""
    return model.architecture.names if isinstance(model, HFInstance) else Names()


def places_of(model: Any) -> dict[str, AdaptedLayer]:
    """The Linear layers of a model, by the names of the checkpoint's modules."""
    layers = [(p, x) for p, x in parts_of(module_of(model)) if isinstance(x, (nn.Linear, LowRankLinear))]
    shapes = {f"{p}.weight": tuple(x.weight.transpose().shape[::-1]) for p, x in layers}
    sources = names_of(model).sources(shapes)
    joined: dict[str, list[tuple[int, str, Any]]] = {}
    transposed: dict[str, bool] = {}
    for path, layer in layers:
        source = sources[f"{path}.weight"]
        name = source.names[0].removesuffix(".weight")
        joined.setdefault(name, []).append((source.part[0] if source.part else 0, path, layer))
        transposed[name] = source.is_transposed
    return {
        name: AdaptedLayer(
            name, tuple((path, x) for _, path, x in sorted(parts, key=lambda p: p[0])), transposed[name]
        )
        for name, parts in joined.items()
    }


def _choose_layers(places: Mapping[str, AdaptedLayer], targets: str | Iterable[str] | None) -> list[str]:
    if targets is None:
        chosen = [n for n, p in places.items() if any(_last(path) in _ATTENTION for path, _ in p.layers)]
        if not chosen:
            raise ArgumentError(
                f"targets: expected names, as the model has no layers {' or '.join(_ATTENTION)}: it has "
                f"{_list_names(places)}"
            )
        return chosen
    if targets == ALL:
        return [name for name in places if _last(name) not in _HEADS]
    names = [targets] if isinstance(targets, str) else list(targets)
    if not names:
        raise ArgumentError("targets: expected at least one name, got none")
    for target in names:
        if not any(ends(name, target) for name in places):
            raise ArgumentError(
                f"targets: no Linear layer is called {target!r}: there are {_list_names(places)}"
            )
    return [name for name in places if any(ends(name, target) for target in names)]


def ends(name: str, tail: str) -> bool:
    """Whether a dotted name is `tail` or has it as its last parts."""
    return name == tail or name.endswith("." + tail)


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _list_names(places: Mapping[str, AdaptedLayer]) -> str:
    return ", ".join(dedup(_last(name) for name in places)) or "none"


def trained_weights(model: Any, modules: Iterable[str]) -> dict[str, Tensor]:
    """The weights of modules that are whole tensors of the checkpoint, by its names."""
    weights: dict[str, Tensor] = nn.state.get_state_dict(module_of(model), buffers=False)
    rules = names_of(model)
    sources = rules.sources({name: tuple(t.shape) for name, t in weights.items()})
    module_names = list(modules)
    return {
        s.names[0]: weights[name]
        for name, s in sources.items()
        if len(s.names) == 1
        and s.part is None
        and not s.is_transposed
        and any(ends(s.names[0].rpartition(".")[0], module) for module in module_names)
    }


def _device(place: AdaptedLayer) -> Any:
    device = place.layers[0][1].weight.transpose().device
    return device[0] if isinstance(device, tuple) else device


def _put(parents: Mapping[str, Any], path: str, value: Any) -> None:
    """Set the attribute, or the item of a list, at `path`."""
    names = path.split(".")
    for i in range(len(names) - 1, -1, -1):
        owner = parents.get(".".join(names[:i]))
        if owner is None:
            continue
        *inner, last = names[i:]
        for name in inner:
            owner = owner[int(name)] if isinstance(owner, (list, tuple)) else _item(owner, name)
        if isinstance(owner, list):
            owner[int(last)] = value
        elif isinstance(owner, dict):
            owner[last] = value
        elif isinstance(owner, tuple):
            raise ArgumentError(
                f"add_lora: {path}: expected a layer in a list or an attribute, got a tuple's"
            )
        else:
            setattr(owner, last, value)
        return


def _item(owner: Any, name: str) -> Any:
    return owner[name] if isinstance(owner, dict) else getattr(owner, name)


def _forget_captures(model: Any) -> None:
    """Forget the captures of an Instance: they are of the layers that it had before."""
    if isinstance(model, Instance):
        model.forget_captures()
