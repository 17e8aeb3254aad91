"""Reads bodies of requests: as Requests of generation, or as texts to embed.

Names, ranges and defaults are those of OpenAI's interface; `top_k`, `min_p` and `repetition_penalty` are
additional ones. Parameters without an effect here are refused, unless they do not matter for an answer.
"""

from __future__ import annotations

import functools
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from polygrad.errors import ArgumentError, DeviceError, ModelError
from polygrad.generation.requests import Grammar, Request
from polygrad.hf.instances import LanguageModel
from polygrad.serve.body import RequestBody
from polygrad.serve.limits import Limits
from polygrad.serve.refusal import Refusal
from polygrad.serve.tools import NO_TOOLS, OfferedTools, read_calls, read_tools

_MOST_STOPS = 16
_MOST_TOKENS = 1 << 31
_IGNORED = (
    "metadata",
    "parallel_tool_calls",
    "prompt_cache_key",
    "safety_identifier",
    "service_tier",
    "store",
    "user",
)
_ROLES = ("system", "developer", "user", "assistant", "tool")


@dataclass(frozen=True)
class Asked:
    """`requests`: one for each choice, in their order; those of one prompt stand together, `count` of them.
    `prefixes`: text that stands before each choice. `top`: how many of the likeliest tokens are told; None:
    no log-probabilities are. `tools`: the names of those that the model may call."""

    is_chat: bool
    requests: tuple[Request, ...]
    count: int
    prefixes: tuple[str, ...]
    top: int | None
    is_streamed: bool
    includes_usage: bool
    tools: tuple[str, ...] = ()

    @property
    def prompt_tokens(self) -> int:
        """The number of tokens of all prompts, each counted once."""
        return sum(len(request.tokens) for request in self.requests[:: self.count])


class RequestReader:
    """Reads bodies for a model. Its methods take time for long prompts, and may run in any thread."""

    def __init__(self, model: LanguageModel, limits: Limits) -> None:
        self._model, self._limits = model, limits
        self._grammar = functools.lru_cache(maxsize=64)(self._make_grammar)

    def chat(self, body: RequestBody) -> Asked:
        """The body of /v1/chat/completions. Raises Refusal."""
        messages, offered = _messages(body), read_tools(body)
        max_tokens = body.integer("max_completion_tokens", 1, _MOST_TOKENS)
        max_tokens = max_tokens or body.integer("max_tokens", 1, _MOST_TOKENS) or _MOST_TOKENS
        body.ignore("max_tokens")
        top = body.integer("top_logprobs", 0, 20)
        if body.flag("logprobs"):
            top = top or 0
        elif top is not None:
            raise Refusal(400, "top_logprobs: expected logprobs to be true, too", "top_logprobs")
        return self._read_request(
            body, [messages], "messages", max_tokens, top, is_chat=True, offered=offered
        )

    def completion(self, body: RequestBody) -> Asked:
        """The body of /v1/completions. Raises Refusal."""
        prompts = _prompts(body)
        if body.value("suffix"):
            raise Refusal(
                400, "suffix: text after the answer is not supported", "suffix", "unsupported_parameter"
            )
        count = body.integer("n", 1, _MOST_TOKENS) or 1
        if (body.integer("best_of", 1, _MOST_TOKENS) or count) != count:
            raise Refusal(400, f"best_of: expected n, {count}", "best_of", "unsupported_parameter")
        max_tokens = body.integer("max_tokens", 1, _MOST_TOKENS) or 16
        top = body.integer("logprobs", 0, 20)
        asked = self._read_request(body, prompts, "prompt", max_tokens, top, is_chat=False)
        if body.flag("echo"):
            if top is not None:
                raise Refusal(400, "echo: not with logprobs: those of a prompt are not known", "echo")
            asked = replace(asked, prefixes=tuple(self._text(p) for p in prompts for _ in range(count)))
        return asked

    def _text(self, prompt: Any) -> str:
        tokenizer = self._model.tokenizer
        return prompt if isinstance(prompt, str) or tokenizer is None else tokenizer.decode(prompt)

    def _read_request(
        self,
        body: RequestBody,
        prompts: list[Any],
        where: str,
        max_tokens: int,
        top: int | None,
        is_chat: bool,
        offered: OfferedTools = NO_TOOLS,
    ) -> Asked:
        count = body.integer("n", 1, self._limits.answers) or 1
        if count * len(prompts) > self._limits.answers:
            raise Refusal(
                400, f"n: expected at most {self._limits.answers} answers, got {count * len(prompts)}", "n"
            )
        stops = _stops(body)
        sampling = self._sampling(body)
        grammar = self._response_format(body)
        if offered.required:
            grammar = self._call_of_tool(offered, grammar)
        streamed = body.flag("stream")
        options = body.section("stream_options")
        if options is not None and not streamed:
            raise Refusal(400, "stream_options: expected stream to be true, too", "stream_options")
        includes_usage = options is not None and options.flag("include_usage")
        if options is not None:
            options.ignore("include_obfuscation")
            options.refuse_others()
        body.ignore("model", "echo", "best_of", "suffix", *_IGNORED)
        body.refuse_others()
        max_tokens = min(max_tokens, self._limits.answer_tokens or max_tokens)
        if offered.tools:
            sampling["tools"] = offered.tools
        requests: list[Request] = []
        for i, prompt in enumerate(prompts):
            place = where if len(prompts) == 1 else f"{where}[{i}]"
            request = _refusing(
                place, lambda p=prompt: self._model.request(  # type: ignore[misc]
                    p, max_new_tokens=max_tokens, stop=stops, log_probabilities=top, grammar=grammar,
                    **sampling,
                ),
            )  # fmt: skip
            self._check_length(request, place)
            requests += request.answers(count)
        prefixes = ("",) * len(requests)
        return Asked(is_chat, tuple(requests), count, prefixes, top, streamed, includes_usage, offered.names)

    def _check_length(self, request: Request, where: str) -> None:
        capacity = self._model.scheduler.engine.capacity
        max_length = min(capacity - 1, self._limits.prompt_tokens or capacity)
        if len(request.tokens) > max_length:
            raise Refusal(
                400,
                f"{where}: {len(request.tokens)} tokens, more than the {max_length} that a prompt may have",
                where,
                "context_length_exceeded",
            )
        _refusing(where, lambda: self._model.scheduler.check(request))

    def _sampling(self, body: RequestBody) -> dict[str, Any]:
        """The given options of Sampling. If the model's files have no sampling defaults, the temperature is
        1, as OpenAI's."""
        options: dict[str, Any] = {
            "temperature": body.number("temperature", 0, 2),
            "top_p": body.number("top_p", 0, 1),
            "top_k": body.integer("top_k", 0, 1 << 24),
            "min_p": body.number("min_p", 0, 1),
            "repetition_penalty": body.number("repetition_penalty", 1e-3, 1e3),
            "presence_penalty": body.number("presence_penalty", -2, 2),
            "frequency_penalty": body.number("frequency_penalty", -2, 2),
        }
        out = {name: value for name, value in options.items() if value is not None}
        if out.get("top_p") == 0:
            out |= {"temperature": 0.0, "top_p": 1.0}  # the likeliest token alone
        if not self._model.defaults.flag("do_sample", False):
            out.setdefault("temperature", 1.0)
        seed = body.integer("seed", -(1 << 63), (1 << 64) - 1)
        out["seed"] = secrets.randbits(63) if seed is None else seed % (1 << 64)
        bias = body.section("logit_bias")
        if bias is not None:
            out["logit_bias"] = _bias(body, self._model.module.vocabulary)
        return out

    def _response_format(self, body: RequestBody) -> Grammar | None:
        format_ = body.section("response_format")
        if format_ is None:
            return None
        kind = format_.choice("type", ("text", "json_object", "json_schema"))
        if kind == "text":
            return None
        schema: Any = {"type": "object"}
        if kind == "json_schema":
            section = format_.section("json_schema")
            schema = None if section is None else section.required("schema")
            if not isinstance(schema, dict):
                raise Refusal(
                    400, "response_format.json_schema.schema: expected an object", "response_format"
                )
        text = json.dumps(schema)
        return _refusing("response_format", lambda: self._grammar(text))

    def _call_of_tool(self, offered: OfferedTools, response_format: Grammar | None) -> Grammar:
        if response_format is not None:
            raise Refusal(
                400, "response_format: an answer that has to call a tool has none", "response_format"
            )
        text = json.dumps(offered.call_schema())
        return _refusing("tools", lambda: self._grammar(text))

    def _make_grammar(self, schema: str) -> Grammar:
        return self._model.json_schema(schema)


def read_embedding(body: RequestBody, limits: Limits) -> tuple[list[Any], str]:
    """The texts of /v1/embeddings, each a string or the ids of tokens, and the encoding of the answer."""
    value = body.required("input")
    texts: list[Any] = [value] if isinstance(value, str) or _is_ids(value) else value
    if not isinstance(texts, list) or not texts or not all(isinstance(t, str) or _is_ids(t) for t in texts):
        raise body.wrong("input", "text, ids of tokens, or a list of either", value)
    if any(not text for text in texts):
        raise Refusal(400, "input: expected text, got an empty string", "input", "invalid_value")
    if len(texts) > limits.texts:
        raise Refusal(400, f"input: expected at most {limits.texts} texts, got {len(texts)}", "input")
    if body.value("dimensions") is not None:
        raise Refusal(400, "dimensions: vectors have one size", "dimensions", "unsupported_parameter")
    encoding = body.choice("encoding_format", ("float", "base64"))
    body.ignore("model", *_IGNORED)
    body.refuse_others()
    return texts, encoding


def _refusing(where: str, make: Callable[[], Any]) -> Any:
    """The result of `make`; its errors become refusals of the entry at `where`."""
    try:
        return make()
    except (ArgumentError, ModelError, DeviceError) as e:
        raise Refusal(400, str(e), where, "invalid_value") from e


def _messages(body: RequestBody) -> list[dict[str, Any]]:
    items = body.required("messages")
    if not isinstance(items, list) or not items:
        raise body.wrong("messages", "a list of at least one message", items)
    return [_message(value, f"messages[{i}]") for i, value in enumerate(items)]


def _message(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Refusal(400, f"{where}: expected an object with a role and a content", where, "invalid_value")
    message = RequestBody(value, f"{where}.")
    role = message.required("role")
    if role not in _ROLES:
        raise message.wrong("role", f"one of {', '.join(_ROLES)}", role)
    content = message.value("content")
    if content is None and not value.get("tool_calls"):
        raise Refusal(400, f"{where}.content: missing", f"{where}.content", "missing_required_parameter")
    if isinstance(content, list):
        content = "".join(_part(part, f"{where}.content[{i}]") for i, part in enumerate(content))
    elif content is not None and not isinstance(content, str):
        raise message.wrong("content", "a string or a list of parts", content)
    if value.get("tool_calls") is not None:
        value = {**value, "tool_calls": read_calls(value["tool_calls"], f"{where}.tool_calls")}
    # templates know the role "system", which OpenAI has called "developer" since 2025
    return {**value, "role": "system" if role == "developer" else role, "content": content}


def _part(part: Any, where: str) -> str:
    if not isinstance(part, dict) or part.get("type") != "text" or not isinstance(part.get("text"), str):
        raise Refusal(400, f"{where}: expected a part of type text: others are not supported", where)
    return part["text"]


def _prompts(body: RequestBody) -> list[Any]:
    value = body.required("prompt")
    if isinstance(value, str) or _is_ids(value):
        return [value]
    if isinstance(value, list) and value and all(isinstance(p, str) or _is_ids(p) for p in value):
        return value
    raise body.wrong("prompt", "text, ids of tokens, or a list of either", value)


def _is_ids(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(x) is int for x in value)


def _stops(body: RequestBody) -> tuple[str, ...]:
    value = body.value("stop")
    stops = [value] if isinstance(value, str) else ([] if value is None else value)
    if (
        not isinstance(stops, list)
        or len(stops) > _MOST_STOPS
        or not all(isinstance(s, str) and s for s in stops)
    ):
        raise body.wrong("stop", f"a string, or up to {_MOST_STOPS} of them, none empty", value)
    return tuple(stops)


def _bias(body: RequestBody, vocabulary: int) -> dict[int, float]:
    out: dict[int, float] = {}
    for name, value in body.value("logit_bias").items():
        is_id = name.isascii() and name.isdigit() and len(name) < 10 and int(name) < vocabulary
        if not is_id or type(value) not in (int, float) or not -100 <= value <= 100:
            raise Refusal(
                400,
                f"logit_bias: expected ids below {vocabulary} and numbers from -100 to 100, got {name!r:.40}",
                "logit_bias",
            )
        out[int(name)] = float(value)
    return out
