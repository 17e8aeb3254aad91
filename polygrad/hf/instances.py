"""The Instances that checkpoints become, by task: what can be asked of a model beside `forward`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from polygrad import nn
from polygrad.errors import ArgumentError, ModelError
from polygrad.generation.engine import Engine
from polygrad.generation.requests import Constraint, NoText, Piece, Request, joined
from polygrad.generation.sampling import Sampling
from polygrad.generation.scheduler import Scheduler, Sequence
from polygrad.hf.files import has_tokenizer, json_fields
from polygrad.hf.tokenizer import Tokenizer
from polygrad.models.architecture import Architecture
from polygrad.models.fields import Fields
from polygrad.models.instance import Instance
from polygrad.models.low_rank import has_adapters
from polygrad.tensor.core.base import DTypeLike

Prompt = str | Iterable[Any]


class HFInstance(Instance):
    """A model of a checkpoint. `config`: its configuration. `unused`: tensors of the file that the
    architecture has no place for."""

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
        self._files = dict(files)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the folder that `load_hf` and transformers read: config.json, model.safetensors, and the
        tokenizer's files as they came. Raises ModelError for a model with adapters."""
        if has_adapters(self.module):
            raise ModelError(
                "save: the model has adapters, which its own files have no place for: "
                "polygrad.tuning.save_adapters writes them, polygrad.tuning.merge adds them to the weights"
            )
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        for name, data in self._files.items():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_bytes(data)
        text = json.dumps(dict(self.config.values), indent=2)
        (target / "config.json").write_text(text + "\n", encoding="utf-8")
        weights = {name: t.detach() for name, t in self.architecture.names.to_file(self.weights()).items()}
        nn.state.safe_save(weights, target / "model.safetensors", metadata={"format": "pt"})

    def __repr__(self) -> str:
        count = sum(t.numel() for t in self.weights().values())
        return f"<{type(self).__name__} {self.architecture.name}: {count / 1e6:.1f} M weights>"


class LanguageModel(HFInstance):
    """A model that predicts the next token, and so writes."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if not 0 <= self.max_seq_len <= self.module.max_length:
            raise ArgumentError(
                f"max_seq_len: expected 0 to {self.module.max_length}, got {self.max_seq_len}"
            )
        self._scheduler: Scheduler | None = None
        self.cache_dtype: DTypeLike = "float32"

    @cached_property
    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer that came with the weights; None if none did."""
        return Tokenizer(self._files, self.module.vocabulary) if has_tokenizer(self._files) else None

    @cached_property
    def defaults(self) -> Fields:
        """generation_config.json: what `generate` does unless it is told."""
        return json_fields(self._files, "generation_config.json", missing={})

    def forget_captures(self) -> None:
        super().forget_captures()
        self._scheduler = None

    @property
    def scheduler(self) -> Scheduler:
        """What runs requests, with a cache for `max_batch` sequences; made when it is first used."""
        if self._scheduler is None:
            engine = Engine(self.module, self.max_batch, self.max_seq_len or None, self.cache_dtype)
            self._scheduler = Scheduler(engine, NoText if self.tokenizer is None else self.tokenizer.stream)
        return self._scheduler

    def generate(self, prompt: Prompt, **options: Any) -> Any:
        """The answer to a prompt, a Completion; to a list of prompts a list of them.

        A prompt is text, a list of token ids, or a conversation: a list of {"role", "content"}, for which the
        model has a chat template. Options are those of `request`; `n`: as many answers to one prompt, a list.
        Raises ArgumentError, ModelError.
        """
        count = options.pop("n", None)
        prompts, is_one = _prompts(prompt)
        requests = [self.request(p, **options) for p in prompts]
        if count is not None:
            seeds = range(requests[0].sampling.seed, requests[0].sampling.seed + count)
            requests = [replace(r, sampling=replace(r.sampling, seed=s)) for r in requests for s in seeds]
        sequences = [self.scheduler.submit(r) for r in requests]
        try:
            while not all(s.is_done for s in sequences):
                self.scheduler.step()
        finally:
            for sequence in sequences:
                sequence.cancel()
        answers = [joined(list(s.pieces), len(s.request.tokens)) for s in sequences]
        return answers[0] if is_one and count is None else answers

    def stream(self, prompt: Prompt, **options: Any) -> Iterator[Piece]:
        """The answer to one prompt, piece by piece, as `generate` gives it. Leaving the loop ends it."""
        prompts, is_one = _prompts(prompt)
        if not is_one:
            raise ArgumentError(f"stream: expected one prompt, got {len(prompts)}: use generate")
        sequence = self.scheduler.submit(self.request(prompts[0], **options))
        return self._pieces(sequence)

    def _pieces(self, sequence: Sequence) -> Iterator[Piece]:
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
        constraint: Constraint | None = None,
        **sampling: Any,
    ) -> Request:
        """A prompt as a Request.

        `max_new_tokens`: 128 unless the model's files say another. `stop`: strings that end the answer.
        `stop_tokens`: tokens that do; None: those that the model's files name. Others are those of
        `Sampling`; where none is given, the model's files say how it samples.
        """
        tokens = self._tokens(prompt)
        if stop_tokens is None:
            stop_tokens = self._end_tokens()
        if max_new_tokens is None:
            max_new_tokens = self.defaults.integer("max_new_tokens", 128)
        stops = (stop,) if isinstance(stop, str) else tuple(stop)
        if stops and self.tokenizer is None:
            raise ArgumentError("stop: strings need a tokenizer, and the model's folder has none")
        try:
            drawn = Sampling(**{**self._default_sampling(), **sampling})
        except TypeError as e:
            names = ", ".join(f.name for f in fields(Sampling))
            raise ArgumentError(f"generate: {e}: options of sampling are {names}") from e
        return Request(
            tokens, max_new_tokens, drawn, frozenset(stop_tokens), stops, log_probabilities, constraint
        )

    def _default_sampling(self) -> dict[str, Any]:
        d = self.defaults
        if not d.flag("do_sample", False):
            return {}
        return {
            "temperature": d.number("temperature", 1.0),
            "top_k": d.integer("top_k", 50, least=0),
            "top_p": d.number("top_p", 1.0),
            "min_p": d.number("min_p", 0.0),
            "repetition_penalty": d.number("repetition_penalty", 1.0),
        }

    def _end_tokens(self) -> list[int]:
        """The tokens that end an answer, by the model's files."""
        for found in (self.defaults, self.config):
            value = found.values.get("eos_token_id")
            if isinstance(value, int):
                return [value]
            if isinstance(value, list):
                return found.items("eos_token_id", int)
        return []

    def _tokens(self, prompt: Any) -> tuple[int, ...]:
        if isinstance(prompt, Mapping):
            raise ArgumentError("prompt: expected text, token ids, or a list of messages, got one message")
        if not isinstance(prompt, str) and all(type(t) is int for t in prompt):
            return tuple(prompt)
        if self.tokenizer is None:
            raise ModelError(
                "prompt: text needs a tokenizer, and the model's folder has none: pass token ids"
            )
        if isinstance(prompt, str):
            return tuple(self.tokenizer.encode(prompt))
        # a template writes the special tokens itself
        text = self.tokenizer.apply_chat_template(prompt, add_generation_prompt=True)
        return tuple(self.tokenizer.encode(text, add_special_tokens=False))


def _prompts(prompt: Any) -> tuple[list[Any], bool]:
    """The prompts, and whether one was given and not a list of them."""
    if isinstance(prompt, str):
        return [prompt], True
    items = list(prompt)
    if not items:
        raise ArgumentError("prompt: expected text, token ids or messages, got an empty list")
    is_one = isinstance(items[0], (int, Mapping))
    return ([items], True) if is_one else (items, False)


_TASKS: dict[str, type[HFInstance]] = {"causal-lm": LanguageModel}


def instance_class(task: str) -> type[HFInstance]:
    """The class of Instances for a task of an Architecture."""
    return _TASKS.get(task, HFInstance)
