"""Answers in the shape of OpenAI's: whole ones, and the chunks of streams."""

from __future__ import annotations

import base64
import json
import struct
import time
import uuid
from collections.abc import Sequence
from typing import Any

from polygrad.generation.requests import Piece, TokenLog
from polygrad.hf.tokenizer import Tokenizer
from polygrad.hf.tool_calls import ToolCall, ToolCallStream, read_tool_calls
from polygrad.serve.parameters import Asked

_WORD_MARK = "\u2581"  # sentencepiece's mark of a space


class Answers:
    """Builds the answers to one request from their pieces."""

    def __init__(self, asked: Asked, model: str, tokenizer: Tokenizer | None) -> None:
        self._asked, self._model, self._tokenizer = asked, model, tokenizer
        self._id = ("chatcmpl-" if asked.is_chat else "cmpl-") + uuid.uuid4().hex
        self._created = int(time.time())
        count = len(asked.requests)
        self._offsets = [len(prefix) for prefix in asked.prefixes]  # of the next token's text
        self._sizes = [0] * count  # tokens so far
        self._calls = [ToolCallStream(asked.tools) if asked.tools else None for _ in range(count)]

    @property
    def answer_tokens(self) -> int:
        """The usage of all answers so far."""
        return sum(self._sizes)

    def whole(self, answers: Sequence[Sequence[Piece]]) -> dict[str, Any]:
        """The response, once all pieces of all answers have arrived."""
        choices = []
        for i, pieces in enumerate(answers):
            text = self._asked.prefixes[i] + "".join(piece.text for piece in pieces)
            joined_piece = self._join(pieces)
            self._sizes[i] += len(joined_piece.tokens)
            choice: dict[str, Any] = {"index": i}
            reason = pieces[-1].finish_reason
            if self._asked.is_chat:
                text, calls = read_tool_calls(text, self._asked.tools) if self._asked.tools else (text, [])
                message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
                if calls:
                    reason = _reason_of_calls(reason)
                    message |= {"content": text or None, "tool_calls": [_call(c) for c in calls]}
                choice["message"] = message
            else:
                choice["text"] = text
            choice["logprobs"] = self._logs(i, joined_piece)
            choices.append({**choice, "finish_reason": reason})
        return {**self._head(is_chunk=False), "choices": choices, "usage": self.usage()}

    def beginnings(self) -> list[dict[str, Any]]:
        """The chunks that come before all pieces."""
        if self._asked.is_chat:
            deltas: list[dict[str, Any]] = [
                {"delta": {"role": "assistant", "content": "", "refusal": None}}
            ] * len(self._asked.requests)
        else:
            deltas = [{"text": prefix} for prefix in self._asked.prefixes]
            if not any(self._asked.prefixes):
                return []
        return [self._chunk(i, {**delta, "logprobs": None}, None) for i, delta in enumerate(deltas)]

    def chunks(self, index: int, pieces: Sequence[Piece]) -> list[dict[str, Any]]:
        """The chunks of further pieces of an answer, which are joined."""
        piece = self._join(pieces)
        self._sizes[index] += len(piece.tokens)
        out = []
        reader = self._calls[index]
        calls: list[ToolCall] = []
        if reader is not None:
            text = reader.feed(piece.text)
            if piece.finish_reason is not None:
                remaining_text, calls = reader.finish()
                text += remaining_text
            piece = piece._replace(text=text)
        if piece.text or piece.logs:
            body: dict[str, Any] = (
                {"delta": {"content": piece.text}} if self._asked.is_chat else {"text": piece.text}
            )
            out.append(self._chunk(index, {**body, "logprobs": self._logs(index, piece)}, None))
        for number, call in enumerate(calls):
            body = {"delta": {"tool_calls": [{"index": number, **_call(call)}]}}
            out.append(self._chunk(index, {**body, "logprobs": None}, None))
        if piece.finish_reason is not None:
            body = {"delta": {}} if self._asked.is_chat else {"text": ""}
            reason = _reason_of_calls(piece.finish_reason) if calls else piece.finish_reason
            out.append(self._chunk(index, {**body, "logprobs": None}, reason))
        return out

    def usage_chunk(self) -> dict[str, Any]:
        """The last chunk, for clients that ask for the usage."""
        return {**self._head(is_chunk=True), "choices": [], "usage": self.usage()}

    def usage(self) -> dict[str, int]:
        """The tokens that were counted."""
        prompt, answer = self._asked.prompt_tokens, self.answer_tokens
        return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}

    def _head(self, is_chunk: bool) -> dict[str, Any]:
        name = "text_completion"
        if self._asked.is_chat:
            name = "chat.completion.chunk" if is_chunk else "chat.completion"
        return {"id": self._id, "object": name, "created": self._created, "model": self._model}

    def _chunk(self, index: int, body: dict[str, Any], reason: str | None) -> dict[str, Any]:
        choice = {"index": index, **body, "finish_reason": reason}
        out = {**self._head(is_chunk=True), "choices": [choice]}
        return {**out, "usage": None} if self._asked.includes_usage else out

    @staticmethod
    def _join(pieces: Sequence[Piece]) -> Piece:
        return Piece(
            "".join(piece.text for piece in pieces),
            tuple(token for piece in pieces for token in piece.tokens),
            tuple(log for piece in pieces for log in piece.logs),
            pieces[-1].finish_reason,
        )

    def _logs(self, index: int, piece: Piece) -> dict[str, Any] | None:
        if self._asked.top is None:
            return None
        pairs = list(zip(piece.tokens, piece.logs, strict=True))
        if self._asked.is_chat:
            return {"content": [self._chat_log(token, log) for token, log in pairs], "refusal": None}
        return self._completion_logs(index, pairs)

    def _chat_log(self, token: int, log: TokenLog) -> dict[str, Any]:
        top = [self._describe_token(t, x) for t, x in log.top.items()]
        return {**self._describe_token(token, log.log_probability), "top_logprobs": top}

    def _describe_token(self, token: int, log_probability: float) -> dict[str, Any]:
        text = self._token_text(token)
        # a token that is a part of a character is no text: its bytes are not known here
        raw = None if "\ufffd" in text else list(text.encode())
        return {"token": text, "logprob": max(log_probability, -9999.0), "bytes": raw}

    def _completion_logs(self, index: int, pairs: list[tuple[int, TokenLog]]) -> dict[str, Any]:
        texts, offsets = [], []
        for token, _ in pairs:
            texts.append(self._token_text(token))
            offsets.append(self._offsets[index])
            self._offsets[index] += len(texts[-1])
        return {
            "tokens": texts,
            "token_logprobs": [max(log.log_probability, -9999.0) for _, log in pairs],
            "top_logprobs": [
                {self._token_text(t): max(x, -9999.0) for t, x in log.top.items()} for _, log in pairs
            ],
            "text_offset": offsets,
        }

    def _token_text(self, token: int) -> str:
        if self._tokenizer is None:
            return ""
        text = self._tokenizer.decode([token], skip_special_tokens=False)
        try:
            starts_word = self._tokenizer.token(token).startswith(_WORD_MARK)
        except ValueError:  # a row of a padded embedding, which is no token
            return ""
        return f" {text}" if starts_word and not text.startswith(" ") else text


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": json.dumps(call.arguments)}
    return {"id": f"call_{uuid.uuid4().hex}", "type": "function", "function": function}


def _reason_of_calls(reason: str | None) -> str | None:
    """The finish reason of an answer with calls; a truncated answer keeps the reason 'length'."""
    return "tool_calls" if reason == "stop" else reason


def embeddings(rows: Sequence[Sequence[float]], tokens: int, model: str, encoding: str) -> dict[str, Any]:
    """The response of /v1/embeddings: vectors as numbers, or as the bytes of float32 in base64."""

    def encoded(row: Sequence[float]) -> Any:
        if encoding == "float":
            return list(row)
        return base64.b64encode(struct.pack(f"<{len(row)}f", *row)).decode()

    data = [{"object": "embedding", "index": i, "embedding": encoded(row)} for i, row in enumerate(rows)]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": model, "usage": usage}
