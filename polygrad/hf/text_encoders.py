"""Instances that read texts: vectors of them (`TextEncoder`), labels (`TextClassifier`), and the words that
are missing (`MaskedLanguageModel`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from polygrad.capture.c_options import COptions
from polygrad.capture.jit import TinyJit
from polygrad.errors import ArgumentError, ModelError
from polygrad.hf.exporting import ReaderSettings, write_reader
from polygrad.hf.files import json_fields, notices
from polygrad.hf.instances import HFInstance
from polygrad.hf.pooling import read_pooling
from polygrad.models.labels import label_names
from polygrad.runtime.bundle import FEATURE_EXTRACTION, TEXT_CLASSIFICATION
from polygrad.tensor.tensor import Tensor

_SHORTEST = 16  # tokens; longer rows are padded to twice that, and so on
_LONGEST_UNBOUNDED = 512  # tokens, where the model has no limit of its own
_BATCH = 32  # texts in one Program, unless max_batch is more


class _TextReader(HFInstance):
    """Reads texts in batches. Batches and rows are padded to powers of two, and each pair of sizes is one
    captured Program."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._programs: dict[tuple[int, int], TinyJit] = {}

    def forget_captures(self) -> None:
        super().forget_captures()
        self._programs = {}

    @cached_property
    def max_tokens(self) -> int:
        """How many tokens a text may have: what the model takes, or less if its files say so, or
        `max_seq_len`."""
        trunk = getattr(self.module, "trunk", self.module)
        places = (trunk, getattr(trunk, "embeddings", None))
        names = ("longest", "max_length")
        limits = (getattr(place, name, None) for place in places for name in names)
        limit = min((n for n in limits if isinstance(n, int)), default=_LONGEST_UNBOUNDED)
        files = json_fields(self._files, "sentence_bert_config.json", missing={})
        return min(limit, files.integer("max_seq_length", limit), self.max_seq_len or limit)

    @property
    def batch_size(self) -> int:
        """How many texts one Program reads at most."""
        return max(_BATCH, self.max_batch)

    def tokens_of(self, text: str) -> list[int]:
        """The tokens of a text, however many they are. Raises ModelError, ArgumentError."""
        return self._tokenizer().encode(text)

    def _tokenizer(self) -> Any:
        if self.tokenizer is None:
            raise ModelError("texts: they need a tokenizer, and the model's folder has none: pass token ids")
        return self.tokenizer

    def _read(self, texts: Iterable[str | Sequence[int]]) -> Tensor:
        """What `_outputs` gives for texts, or for the tokens of texts; (n, ...) float32."""
        if isinstance(texts, (str, bytes)):
            raise ArgumentError("texts: expected a list of texts, got one")
        rows = [self._row(text, i) for i, text in enumerate(texts)]
        if not rows:
            raise ArgumentError("texts: expected at least one, got none")
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))  # rows of a batch have like lengths
        size = self.batch_size
        parts = [
            self._run([rows[i] for i in order[first : first + size]]) for first in range(0, len(rows), size)
        ]
        out = parts[0] if len(parts) == 1 else Tensor.cat(*parts)
        places = sorted(range(len(rows)), key=order.__getitem__)
        with Tensor.no_grad():
            if order != sorted(order):
                out = out[Tensor(places, self.device, dtype="int32")]
            return out.realize()

    def _row(self, text: str | Sequence[int], index: int) -> list[int]:
        if isinstance(text, str):
            batch = self._tokenizer().encode_batch([text], max_length=self.max_tokens)
            row: list[int] = batch.ids[0]
        else:
            row = list(text)[: self.max_tokens]
        self.check_tokens([row], index)
        return row

    def check_tokens(self, rows: Iterable[Sequence[int]], first: int = 0) -> None:
        """Raises ArgumentError, which names the row, for tokens that do not exist, and a row without any.
        `first`: the number of the first row."""
        size = self.config.integer("vocab_size")
        for i, row in enumerate(rows, first):
            wrong = next((t for t in row if type(t) is not int or not 0 <= t < size), None)
            if wrong is not None:
                raise ArgumentError(
                    f"texts[{i}]: expected ids of the model's {size} tokens, got {wrong!r:.80}"
                )
            if not row:
                raise ArgumentError(f"texts[{i}]: expected at least one token, got none")

    @property
    def lengths(self) -> list[int]:
        """The numbers of tokens to which rows are padded."""
        out = [_SHORTEST]
        while out[-1] < self.max_tokens:
            out.append(2 * out[-1])
        return [*out[:-1], self.max_tokens]

    @property
    def pad_id(self) -> int:
        """The token of padding."""
        pad = self.config.integer("pad_token_id", None, least=0)
        if pad is None:
            return 0 if self.tokenizer is None else self.tokenizer.pad_id or 0
        return pad

    def _write(self, path: Any, kind: str, labels: Sequence[str], c: COptions | None) -> None:
        settings = ReaderSettings(self.lengths, self.config.integer("vocab_size"), self.pad_id, labels)
        about = notices(self._files, self.metadata)
        write_reader(
            path, kind, self.module, self.weights(), self._outputs, settings, self.tokenizer, about, c
        )

    def _run(self, rows: list[list[int]]) -> Tensor:
        length = next(n for n in self.lengths if n >= max(len(row) for row in rows))
        count = 1 << (len(rows) - 1).bit_length()
        pad = self.pad_id
        padded_rows = [*rows, *[rows[0]] * (count - len(rows))]
        ids = [[*row, *[pad] * (length - len(row))] for row in padded_rows]
        mask = [[1] * len(row) + [0] * (length - len(row)) for row in padded_rows]
        program = self._programs.setdefault((count, length), TinyJit(self._outputs))
        with Tensor.no_grad():
            states = program(
                Tensor(ids, self.device, dtype="int32"), Tensor(mask, self.device, dtype="int32")
            )
            return states[: len(rows)].clone().realize()  # the next run writes into the same memory

    def _outputs(self, ids: Tensor, mask: Tensor) -> Tensor:
        raise NotImplementedError


class TextEncoder(_TextReader):
    """A model that gives the vectors of tokens, and so of texts."""

    @cached_property
    def pooling(self) -> Any:
        """How vectors of tokens become that of their text: by modules.json and the files that it names, as
        sentence-transformers writes them, or by `pooling_type` of a GGUF file; without them their mean."""
        return read_pooling(self._files, self.metadata)

    def embed(self, texts: Iterable[str | Sequence[int]]) -> Tensor:
        """A vector of each text, float32 (n, hidden). A text is a string, or the ids of its tokens; longer
        ones than the model takes lose their ends.

        Raises ArgumentError, ModelError.
        """
        return self._read(texts)

    def export(
        self,
        path: Any,
        inputs: Mapping[str, Any] | None = None,
        /,
        *,
        c: COptions | None = None,
        **more: Any,
    ) -> None:
        """Write the file `path` (.pgrd) that gives the vectors of texts without this package's models, and
        without Python where the device is WASM or WEBGPU, with the tokenizer, the licence and the card.

        `polygrad.export.load_text_encoder` and JavaScript's `loadTextEncoder` of `polygrad/runtime` run it.
        It has a Program for 16 tokens, 32, and so on up to `max_tokens`. With `inputs` (or `more`): the
        forward pass alone, as `Instance.export` writes it. Raises ArgumentError, ModelError for a tokenizer
        that JavaScript cannot run.
        """
        if inputs or more:
            return super().export(path, inputs, c=c, **more)
        return self._write(path, FEATURE_EXTRACTION, (), c)

    def _outputs(self, ids: Tensor, mask: Tensor) -> Tensor:
        states = self.module.forward(input_ids=ids, attention_mask=mask)["last_hidden_state"]
        return self.pooling(states, mask).contiguous()


class TextClassifier(_TextReader):
    """A model that gives the labels of texts."""

    @cached_property
    def labels(self) -> list[str]:
        """The names of the labels, by `id2label` of config.json."""
        return label_names(self.config)

    def classify(self, texts: Iterable[str | Sequence[int]]) -> list[dict[str, float]]:
        """The probability of each label, for each text, as `embed` takes them. Labels exclude each other
        unless config.json's `problem_type` says that several may hold; a model of one number gives that.

        Raises ArgumentError, ModelError.
        """
        rows = self._read(texts).tolist()
        return [dict(zip(self.labels, row, strict=True)) for row in rows]

    def export(
        self,
        path: Any,
        inputs: Mapping[str, Any] | None = None,
        /,
        *,
        c: COptions | None = None,
        **more: Any,
    ) -> None:
        """As `TextEncoder.export`, for the probabilities of labels: `load_text_classifier` and
        `loadTextClassifier` run the file."""
        if inputs or more:
            return super().export(path, inputs, c=c, **more)
        return self._write(path, TEXT_CLASSIFICATION, self.labels, c)

    def _outputs(self, ids: Tensor, mask: Tensor) -> Tensor:
        logits = self.module.forward(input_ids=ids, attention_mask=mask)["logits"].float()
        return self.module.labels.probabilities(logits).contiguous()


class Filling(NamedTuple):
    """A token that may stand where a mask is: its text, its probability, and its id."""

    text: str
    probability: float
    token: int


class MaskedLanguageModel(_TextReader):
    """A model that tells what stands where a text has masks."""

    def fill_mask(self, text: str | Sequence[int], count: int = 5) -> list[list[Filling]]:
        """The likeliest tokens for each mask of a text, in order, `count` of them each, the likeliest first.

        `text`: with the tokenizer's `special_token("mask_token")` where words are missing, or the ids of its
        tokens. Raises ArgumentError for a text without masks, ModelError for a tokenizer that has none.
        """
        if type(count) is not int or not 1 <= count <= self.config.integer("vocab_size"):
            raise ArgumentError(f"count: expected 1 up to the number of tokens, got {count!r}")
        tokenizer = self._tokenizer()
        name = tokenizer.special_token("mask_token")
        if name is None:
            raise ModelError("fill_mask: expected a tokenizer with a mask_token, and it has none")
        mask = tokenizer.id(name)
        row = self._row(text, 0)
        places = [i for i, token in enumerate(row) if token == mask]
        if not places:
            raise ArgumentError(
                f"text: expected at least one {name} in the {self.max_tokens} tokens that the model takes"
            )
        with Tensor.no_grad():
            scores = self._run([row])[0, Tensor(places, self.device, dtype="int32")]
            tops = [part.tolist() for part in scores.softmax(-1).topk(count)]
        return [
            [
                Filling(tokenizer.decode([t], skip_special_tokens=False), p, t)
                for p, t in zip(*rows, strict=True)
            ]
            for rows in zip(*tops, strict=True)
        ]

    def _outputs(self, ids: Tensor, mask: Tensor) -> Tensor:
        out: Tensor = self.module.forward(input_ids=ids, attention_mask=mask)["logits"]
        return out.float().contiguous()
