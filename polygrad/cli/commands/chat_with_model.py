"""Talks with a model, which has to have a chat template. Each line is a message; the conversation is kept.

polygrad chat Qwen/Qwen2-0.5B-Instruct --system "You answer in one sentence."
printf 'Hello\\nWhat did I say?\\n' | polygrad chat ./my-model --json

/reset begins a new conversation, /exit or Ctrl-D leaves, Ctrl-C ends an answer. With --json each answer is an
object on a line of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import sys
from typing import Any

from polygrad.cli.hosts import write
from polygrad.cli.models import (
    Speed,
    add_model_arguments,
    add_sampling_arguments,
    load_model,
    sampling_options,
    show,
    tell,
)
from polygrad.errors import PolygradError
from polygrad.generation.requests import Piece
from polygrad.hf.instances import LanguageModel

NAME = "chat"
HELP = "talk with a model"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)
    parser.add_argument("--system", metavar="TEXT", help="what the model is told before the conversation")
    add_sampling_arguments(parser)
    parser.add_argument("--json", action="store_true", help="write JSON, an object for each answer")


def run(options: argparse.Namespace) -> int:
    model = load_model(options, LanguageModel, "writes text")
    if sys.stdin.isatty():
        with contextlib.suppress(ImportError):
            importlib.import_module("readline")  # input() then edits lines and remembers them
        tell("/reset begins a new conversation, /exit leaves, Ctrl-C ends an answer")
    beginning = [{"role": "system", "content": options.system}] if options.system else []
    messages: list[dict[str, str]] = list(beginning)
    while (line := _next_line()) is not None:
        command = line.strip()
        if command == "/exit":
            break
        if command == "/reset":
            messages = list(beginning)
        elif command.startswith("/") and " " not in command:
            tell(f"there is no {command}: /reset, /exit")
        elif command:
            prompt_messages = [*messages, {"role": "user", "content": line}]
            try:
                answer = _answer(model, prompt_messages, options)
            except PolygradError as e:  # too long, for one: the conversation is as it was before
                tell(f"polygrad: {e}")
                if not sys.stdin.isatty():
                    return 1
                continue
            messages = [*prompt_messages, {"role": "assistant", "content": answer}]
    return 0


def _next_line() -> str | None:
    """The next message; None at the end of the input."""
    while True:
        try:
            return input("> " if sys.stdin.isatty() else "")
        except EOFError:
            return None
        except KeyboardInterrupt:
            tell("\n(/exit leaves)")


def _answer(model: LanguageModel, messages: list[dict[str, str]], options: argparse.Namespace) -> str:
    """The answer to a conversation, which is written as it comes; Ctrl-C ends it."""
    speed, pieces, is_ended = Speed(), list[Piece](), False
    stream: Any = model.stream(messages, **sampling_options(options))
    try:
        for piece in speed.watch(stream):
            pieces.append(piece)
            if not options.json:
                show(piece.text)
    except KeyboardInterrupt:
        is_ended = True
    finally:
        stream.close()
    text = "".join(piece.text for piece in pieces)
    reason = "cancelled" if is_ended or not pieces else pieces[-1].finish_reason
    if options.json:
        write(json.dumps({"text": text, "finish_reason": reason, **speed.numbers()}))
    else:
        write("")
    sys.stdout.flush()
    tell(f"[{reason}: {speed}]")
    return text
