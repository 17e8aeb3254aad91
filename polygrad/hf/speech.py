"""Instances that write down what is said: Whisper."""

from __future__ import annotations

from typing import Any

from polygrad.errors import ArgumentError, ModelError
from polygrad.hf.sequence_to_sequence import SequenceToSequence

_TASKS = ("transcribe", "translate")


class SpeechRecognizer(SequenceToSequence):
    """A model that reads sound and writes text."""

    @property
    def seconds(self) -> int:
        """How many seconds of sound the model reads."""
        return int(2 * self.module.encoder.length // 100)

    def speech_prefix(self, language: str | None = None, task: str | None = None) -> list[int]:
        """The `prefix` of `generate` for a `language` ("en"), which the sound is in, and a `task`:
        "transcribe", or "translate" into English. The answer has no times. Raises ArgumentError for a
        language that the model does not have, and for a model of one language."""
        task = "transcribe" if task is None else task
        if task not in _TASKS:
            raise ArgumentError(f"task: expected {' or '.join(_TASKS)}, got {task!r:.80}")
        if language is None:
            raise ArgumentError("task: expected a language with it, got none")
        if self.tokenizer is None:
            raise ModelError("language: it needs a tokenizer, and the model's folder has none")
        start: Any = self.module.start_token
        if start is None:
            raise ModelError("language: the model's configuration names no start token")
        names = (f"<|{language}|>", f"<|{task}|>", "<|notimestamps|>")
        return [start, *(self._token(name) for name in names)]

    def _token(self, name: str) -> int:
        assert self.tokenizer is not None
        try:
            return self.tokenizer.id(name)
        except ArgumentError as e:
            raise ArgumentError(
                f"language: expected one that the model has, as 'en', got none with the token {name}"
            ) from e
