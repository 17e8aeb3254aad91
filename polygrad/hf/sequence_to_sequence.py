"""Instances that read one sequence and write another: T5, Whisper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from polygrad.errors import ArgumentError
from polygrad.generation.engine import Engine
from polygrad.generation.requests import Completion, NoText, Request, join_pieces
from polygrad.generation.sampling import Sampling
from polygrad.generation.scheduler import Scheduler
from polygrad.generation.scheduler import Sequence as Running
from polygrad.hf.instances import HFInstance
from polygrad.models.instance import NOT_QUANTIZED
from polygrad.models.log_mel import log_mel
from polygrad.tensor.tensor import Tensor

_PIECES = 100  # a second has as many
_CAPACITY = 512  # tokens of an answer, where the model has no limit of its own


class SequenceToSequence(HFInstance):
    """A model that reads a sequence as a whole and writes another. `max_batch` sequences are read and written
    side by side."""

    def generate(
        self,
        inputs: Any,
        max_new_tokens: int | None = None,
        prefix: Iterable[int] | None = None,
        stop_tokens: Iterable[int] | None = None,
        **sampling: Any,
    ) -> Any:
        """What the model writes for an input, a Completion; for a list of them a list.

        An input is text, a list of token ids, or of Whisper sound: float samples, 16,000 a second, as a
        Tensor or an array, or what `log_mel` makes of them, (bands, pieces).

        `prefix`: the tokens that the answer begins with; None: the start token and what the model's files
        name (`forced_decoder_ids`). Others are those of `LanguageModel.request`.
        """
        items, is_one = _items(inputs)
        request = self.request(max_new_tokens, prefix, stop_tokens, **sampling)
        answers: list[Completion] = []
        for first in range(0, len(items), self.max_batch):
            scheduler, sequences = self.submit(items[first : first + self.max_batch], request)
            while not all(s.is_done for s in sequences):
                scheduler.step()
            answers += [join_pieces(list(s.pieces), len(request.tokens)) for s in sequences]
        return answers[0] if is_one else answers

    def request(
        self,
        max_new_tokens: int | None = None,
        prefix: Iterable[int] | None = None,
        stop_tokens: Iterable[int] | None = None,
        **sampling: Any,
    ) -> Request:
        """How to write an answer: see `generate`. Raises ArgumentError."""
        begin = tuple(self._prefix() if prefix is None else prefix)
        ends = frozenset(self.end_tokens() if stop_tokens is None else stop_tokens)
        count = self.defaults.integer("max_new_tokens", 128) if max_new_tokens is None else max_new_tokens
        return Request(begin, count, Sampling(**sampling), ends)

    def submit(self, inputs: Sequence[Any], request: Request) -> tuple[Scheduler, list[Running]]:
        """Read up to `max_batch` inputs, whose answers the scheduler then writes. The
        answers of an earlier call have to be complete. Raises ArgumentError, ShapeError."""
        tensors = [self._tensor(self._encode(x)) for x in inputs]
        scheduler, memory = self._reader(max(self._length(x) for x in tensors))
        with Tensor.no_grad():
            for slot, x in enumerate(tensors):
                self.module.remember(memory, slot, x)
        return scheduler, [scheduler.submit(request, slot) for slot in range(len(tensors))]

    def quantize(
        self, kind: str, skip: str | Iterable[str] = NOT_QUANTIZED, activations: str | None = None
    ) -> None:
        """See `Instance.quantize`. Raises ArgumentError."""
        super().quantize(kind, skip, activations)
        self.__dict__.pop("_made", None)  # captured Programs read the old weights

    def _reader(self, length: int) -> tuple[Scheduler, Any]:
        """The scheduler for inputs of up to `length` positions; made again for longer inputs."""
        cached = self.__dict__.get("_made")
        if cached is None or cached[0] < length:
            room = 1 << (length - 1).bit_length()
            memory = self.module.new_memory(self.max_batch, room)
            capacity = min(self.max_seq_len or _CAPACITY, self.module.max_length)
            engine = Engine(self.module.reading(memory), self.max_batch, capacity)
            scheduler = Scheduler(engine, NoText if self.tokenizer is None else self.tokenizer.stream)
            cached = self.__dict__["_made"] = (room, scheduler, memory)
        return cached[1], cached[2]

    def _length(self, x: Tensor) -> int:
        """Positions that the encoder's output has for an input."""
        return int(x.shape[1]) if self.architecture.task == "text-to-text" else int(x.shape[2]) // 2

    def _encode(self, item: Any) -> Tensor:
        if self.architecture.task == "speech-to-text":
            return self._heard(item if isinstance(item, Tensor) else Tensor(item))
        if isinstance(item, str):
            if self.tokenizer is None:
                raise ArgumentError("inputs: text needs a tokenizer, and the model's folder has none")
            item = self.tokenizer.encode(item)
        return Tensor([list(item)], self.device, "int32")

    def _heard(self, sound: Tensor) -> Tensor:
        if sound.ndim not in (1, 2):
            raise ArgumentError(
                f"sound: expected samples, or bands of pieces, got shape {tuple(sound.shape)}"
            )
        encoder = self.module.encoder
        pieces = 2 * encoder.length
        if sound.ndim == 2:
            return sound.unsqueeze(0)
        if pieces % _PIECES:
            raise ArgumentError(f"sound: the model reads {pieces} pieces, no whole seconds: give log_mel's")
        return log_mel(sound, encoder.bands, pieces // _PIECES)

    def _prefix(self) -> list[int]:
        start = self.module.start_token
        if start is None:
            raise ArgumentError("prefix: the model's configuration names no start token: give one")
        forced = self.defaults.values.get("forced_decoder_ids") or []
        return [start, *(token for _, token in sorted(forced) if token is not None)]


def _items(inputs: Any) -> tuple[list[Any], bool]:
    """The inputs, and whether one was given and not a list of them."""
    if isinstance(inputs, (str, Tensor)) or not isinstance(inputs, (list, tuple)):
        return [inputs], True
    if not inputs:
        raise ArgumentError("inputs: expected text, token ids or sound, got an empty list")
    return ([list(inputs)], True) if isinstance(inputs[0], (int, float)) else (list(inputs), False)
