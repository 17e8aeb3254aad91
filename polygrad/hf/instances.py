"""The Instances of checkpoints, by task: the methods of a model besides `forward`."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from polygrad import nn
from polygrad.capture.c_options import COptions
from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError, ModelError
from polygrad.generation.beams import BeamOptions, beam_search
from polygrad.generation.engine import Engine
from polygrad.generation.requests import Completion, Grammar, NoText, Piece, Request, join_pieces
from polygrad.generation.sampling import Sampling
from polygrad.generation.scheduler import Scheduler
from polygrad.generation.scheduler import Sequence as Running
from polygrad.helpers import write_file
from polygrad.hf.constraints import token_grammar
from polygrad.hf.exporting import write_language_model
from polygrad.hf.files import has_tokenizer, json_fields, notices
from polygrad.hf.prompts import Prompts, default_sampling
from polygrad.hf.tokenizer import Tokenizer
from polygrad.models.architecture import Architecture
from polygrad.models.fields import Fields
from polygrad.models.instance import Instance
from polygrad.models.low_rank import has_adapters
from polygrad.nn.quantize import find_packable_weights
from polygrad.tensor.core.base import DTypeLike
from polygrad.tensor.tensor import Tensor

Prompt = str | Iterable[Any]


class HFInstance(Instance):
    """A model of a checkpoint. `config`: its configuration. `unused`: tensors of the file that the
    architecture has no place for. `metadata`: of a GGUF file, as `gguf_load` gives it."""

    def __init__(
        self,
        module: Any,
        architecture: Architecture,
        config: Fields,
        files: Mapping[str, bytes],
        device: str | None = None,
        max_batch: int = 1,
        max_seq_len: int = 0,
    ) -> None:
        super().__init__(module, device)
        if max_batch < 1:
            raise ArgumentError(f"max_batch: expected at least 1, got {max_batch}")
        self.architecture, self.config = architecture, config
        self.max_batch, self.max_seq_len = max_batch, max_seq_len
        self.unused: list[str] = []
        self.metadata: Mapping[str, Any] = {}
        self._files = dict(files)

    @cached_property
    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer that came with the weights; None if none did. Its library is opened by the first
        `encode`, as prompts may be ids."""
        rows = getattr(self.module, "vocabulary", None)
        if has_tokenizer(self._files):
            return Tokenizer(self._files, rows, opens_library=False)
        if "tokenizer.ggml.model" in self.metadata:
            return Tokenizer.from_gguf(self.metadata, rows, opens_library=False)
        return None

    @cached_property
    def defaults(self) -> Fields:
        """generation_config.json: the defaults of `generate`."""
        return json_fields(self._files, "generation_config.json", missing={})

    def end_tokens(self) -> list[int]:
        """The tokens that end an answer, by the model's files."""
        for source in (self.defaults, self.config):
            value = source.values.get("eos_token_id")
            if isinstance(value, int):
                return [value]
            if isinstance(value, list):
                return source.items("eos_token_id", int)
        return []

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the folder that `load_hf` and transformers read: config.json, with the dtype of the weights,
        model.safetensors, and the other small files as they came. Packed weights are written as the floats
        that they stand for. Raises ModelError for a model with adapters."""
        if has_adapters(self.module):
            raise ModelError(
                "save: the model has adapters, which its own files have no place for: "
                "polygrad.tuning.save_adapters writes them, polygrad.tuning.merge adds them to the weights"
            )
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        for name, data in self._files.items():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            write_file(target / name, [data])
        all_weights = _unpack(self.weights(), self._packed())
        text = json.dumps(_with_dtype(self.config.values, all_weights.values()), indent=2)
        (target / "config.json").write_text(text + "\n", encoding="utf-8")
        weights = {name: t.detach() for name, t in self.architecture.names.to_file(all_weights).items()}
        nn.state.safe_save(weights, target / "model.safetensors", metadata={"format": "pt"})

    def __repr__(self) -> str:
        count = sum(t.numel() for t in _unpack(self.weights(), self._packed()).values())
        return f"<{type(self).__name__} {self.architecture.name}: {count / 1e6:.1f} M weights>"

    def _packed(self) -> dict[str, nn.PackedWeight]:
        weights = {name: place.weight for name, place in find_packable_weights(self.module).items()}
        return {name: w for name, w in weights.items() if isinstance(w, nn.PackedWeight)}


def _unpack(weights: Mapping[str, Tensor], packed: Mapping[str, nn.PackedWeight]) -> dict[str, Tensor]:
    """The weights by name, with those that are packed, lazily, as floats in the place of their planes."""
    planes = {f"{name}.{plane}" for name, weight in packed.items() for plane in weight.planes}
    out = {name: t for name, t in weights.items() if name not in planes}
    return out | {name: weight.dense() for name, weight in packed.items()}


def _with_dtype(config: Mapping[str, Any], weights: Iterable[Tensor]) -> dict[str, Any]:
    """The configuration with the dtype that most of the weights have, where it names one: transformers loads
    them in it."""
    sizes: Counter[str] = Counter()
    for t in weights:
        if t.dtype.is_float and t.dtype not in dtypes.fp8s:
            sizes[t.dtype.name] += t.numel()
    named = [key for key in ("dtype", "torch_dtype") if config.get(key) is not None] if sizes else []
    return {**config, **{key: sizes.most_common(1)[0][0] for key in named}}


class LanguageModel(HFInstance):
    """A model that generates text by predicting the next token."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if not 0 <= self.max_seq_len <= self.module.max_length:
            raise ArgumentError(
                f"max_seq_len: expected 0 to {self.module.max_length}, got {self.max_seq_len}"
            )
        self._scheduler: Scheduler | None = None
        self._beam_engines: dict[int, Engine] = {}
        self.cache_dtype: DTypeLike = "float32"

    def json_schema(self, schema: str | Mapping[str, Any]) -> Grammar:
        """A grammar for `generate`: answers are JSON that a schema describes. See `token_grammar`."""
        return token_grammar(self._need_tokenizer("json_schema"), self.module.vocabulary, schema=schema)

    def regular_expression(self, pattern: str) -> Grammar:
        """A grammar for `generate`: answers match a regular expression. See `token_grammar`."""
        return token_grammar(
            self._need_tokenizer("regular_expression"), self.module.vocabulary, pattern=pattern
        )

    def _need_tokenizer(self, what: str) -> Tokenizer:
        if self.tokenizer is None:
            raise ModelError(f"{what}: text needs a tokenizer, and the model's folder has none")
        return self.tokenizer

    def forget_captures(self) -> None:
        super().forget_captures()
        self._scheduler, self._beam_engines = None, {}

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler of requests, with a cache for `max_batch` sequences; made on first use."""
        if self._scheduler is None:
            self._scheduler = self._new_scheduler()
        return self._scheduler

    def _new_scheduler(self) -> Scheduler:
        engine = Engine(self.module, self.max_batch, self.max_seq_len or None, self.cache_dtype)
        return Scheduler(engine, NoText if self.tokenizer is None else self.tokenizer.stream)

    def reset(self) -> None:
        """Drop running and waiting requests, and the cache, after a failure within a step."""
        self._scheduler = self._new_scheduler()

    def generate(self, prompt: Prompt, **options: Any) -> Any:
        """The answer to a prompt, a Completion; to a list of prompts a list of them.

        A prompt is text, a list of token ids, or a conversation: a list of {"role", "content"}, for which the
        model has a chat template. Options are those of `request`; `n`: as many answers to one prompt, a list,
        with seeds that count up from a `seed` that is given.
        `beams`: the likeliest answers are searched for, see `BeamOptions`, of which further options may be
        given. Raises ArgumentError, ModelError.
        """
        count, width = options.pop("n", None), options.pop("beams", 1)
        prompts, is_one = _prompts(prompt)
        if width > 1:
            lists = [self._beams(p, width, count or 1, **options) for p in prompts]
            answers_or_lists: list[Any] = lists if count is not None else [answers[0] for answers in lists]
            return answers_or_lists[0] if is_one else answers_or_lists
        requests = [self.request(p, **options) for p in prompts]
        if count is not None:
            requests = [answer for r in requests for answer in r.answers(count)]
        sequences = [self.scheduler.submit(r) for r in requests]
        try:
            while not all(s.is_done for s in sequences):
                self.scheduler.step()
        finally:
            for sequence in sequences:
                sequence.cancel()
        answers = [join_pieces(list(s.pieces), len(s.request.tokens)) for s in sequences]
        return answers[0] if is_one and count is None else answers

    def _beams(
        self,
        prompt: Any,
        width: int,
        count: int,
        length_penalty: float = 1.0,
        early_stopping: bool = False,
        **options: Any,
    ) -> list[Completion]:
        request = self.request(prompt, **options)
        if request.sampling != Sampling() or request.stop or request.grammar is not None:
            raise ArgumentError("beams: no temperature, penalties, stop strings or grammars go with them")
        if not 1 <= count <= width:
            raise ArgumentError(f"n: expected 1 to {width}, the number of beams, got {count}")
        if width not in self._beam_engines:
            engine = Engine(self.module, width, self.max_seq_len or None, self.cache_dtype)
            self._beam_engines = {width: engine}  # caches are large, so only one is kept
        search = BeamOptions(request.max_new_tokens, length_penalty, early_stopping)
        beams = beam_search(self._beam_engines[width], request.tokens, request.stop_tokens, search)
        answers = []
        for beam in beams[:count]:
            text = "" if self.tokenizer is None else self.tokenizer.decode(beam.tokens)
            reason = "stop" if beam.is_finished else "length"
            answers.append(Completion(text, beam.tokens, reason, len(request.tokens)))
        return answers

    def stream(self, prompt: Prompt, **options: Any) -> Iterator[Piece]:
        """The answer to one prompt, piece by piece, as `generate` gives it. Leaving the loop ends it."""
        prompts, is_one = _prompts(prompt)
        if not is_one:
            raise ArgumentError(f"stream: expected one prompt, got {len(prompts)}: use generate")
        return self.run(self.request(prompts[0], **options))

    def run(self, request: Request) -> Iterator[Piece]:
        """The answer to a request, piece by piece. Raises ArgumentError, at once."""
        return self._pieces(self.scheduler.submit(request))

    def _pieces(self, sequence: Running) -> Iterator[Piece]:
        try:
            while True:
                while sequence.pieces:
                    yield sequence.pieces.popleft()
                if sequence.is_done:
                    return
                self.scheduler.step()
        finally:
            sequence.cancel()

    def request(
        self,
        prompt: Any,
        max_new_tokens: int | None = None,
        stop: str | Iterable[str] = (),
        stop_tokens: Iterable[int] | None = None,
        log_probabilities: int | None = None,
        grammar: Grammar | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        **sampling: Any,
    ) -> Request:
        """A prompt as a Request.

        `max_new_tokens`: 128 unless the model's files say another. `stop`: strings that end the answer.
        `stop_tokens`: tokens that do; None: those that the model's files name. `grammar`: what the answer has
        to be, see `json_schema` and `regular_expression`. `tools`: JSON schemas of functions that the model
        may call, for a conversation; `read_tool_calls` finds the calls in its answer. Others are those of
        `Sampling`; where none is given, the model's files say how it samples.
        """
        return self.prompts.request(
            prompt, max_new_tokens, stop, stop_tokens, log_probabilities, grammar, tools, **sampling
        )

    @property
    def prompts(self) -> Prompts:
        """What makes Requests of prompts, with the defaults of the model's files."""
        count = self.defaults.integer("max_new_tokens", 128)
        return Prompts(self.tokenizer, self.end_tokens(), count, default_sampling(self.defaults))

    def export(
        self,
        path: Any,
        inputs: Mapping[str, Any] | None = None,
        /,
        *,
        c: COptions | None = None,
        **more: Any,
    ) -> None:
        """Write the file `path` (.pgrd) that generates text without this package's models, and without Python
        where the device is WASM or WEBGPU: the model, its cache, what draws tokens, the tokenizer, the
        settings of the model's files, its licence and its card (LICENSE, NOTICE, README.md).

        `polygrad.export.load_language_model` and JavaScript's `loadLanguageModel` of `polygrad/runtime` run
        it. The cache has room for `max_seq_len` tokens; where that is 0, for all that the model takes, but
        at most 2048. With `inputs` (or `more`): the forward pass alone, for inputs of their shapes, as
        `Instance.export` does. Raises ArgumentError, ModelError for a tokenizer that JavaScript cannot run.
        """
        if inputs or more:
            return super().export(path, inputs, c=c, **more)
        return write_language_model(
            path,
            self.module,
            self.weights(),
            self.max_seq_len,
            self.cache_dtype,
            self.prompts,
            notices(self._files, self.metadata),
            c,
        )


def _prompts(prompt: Any) -> tuple[list[Any], bool]:
    """The prompts, and whether one was given and not a list of them."""
    if isinstance(prompt, str):
        return [prompt], True
    items = list(prompt)
    if not items:
        raise ArgumentError("prompt: expected text, token ids or messages, got an empty list")
    is_one = isinstance(items[0], (int, Mapping))
    return ([items], True) if is_one else (items, False)
