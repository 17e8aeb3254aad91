"""Serves a model to programs that know OpenAI's interface, on this machine unless --host says otherwise.

polygrad serve Qwen/Qwen2-0.5B-Instruct --port 8000
curl http://127.0.0.1:8000/v1/chat/completions -H 'Content-Type: application/json' \\
  -d '{"messages": [{"role": "user", "content": "Hello"}]}'

A model that writes has /v1/chat/completions and /v1/completions, an encoder /v1/embeddings; both have
/v1/models, /health and /metrics. SIGTERM or Ctrl-C ends it when the answers that run are whole, or when
--stop-time has passed. It needs pip install "polygrad[serve]".
"""

from __future__ import annotations

import argparse
from pathlib import Path

from polygrad.cli.models import add_model_arguments, load_model
from polygrad.errors import ArgumentError
from polygrad.helpers import getenv
from polygrad.hf.instances import HFInstance
from polygrad.serve import Limits, serve

NAME = "serve"
HELP = "serve a model, with OpenAI's interface"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)
    parser.add_argument("--name", help="what clients call the model (the folder's or the repository's name)")
    parser.add_argument("--host", default="127.0.0.1", help="where to listen (127.0.0.1: this machine alone)")
    parser.add_argument("--port", type=int, default=8000, help="0: any that is free (8000)")
    parser.add_argument(
        "--api-key",
        metavar="KEY",
        help="what clients have to send (the variable POLYGRAD_API_KEY, or nothing)",
    )
    parser.add_argument("--max-batch", type=int, default=8, metavar="N", help="answers side by side (8)")
    parser.add_argument("--log-requests", action="store_true", help="a line on standard error for each")
    group = parser.add_argument_group("limits")
    d = Limits()
    for name, kind, words in (
        ("--max-body", int, f"bytes of a request ({d.body_bytes})"),
        ("--max-prompt", int, "tokens of a prompt (as many as the model takes)"),
        ("--max-answer", int, "tokens of an answer (as many as there is room for)"),
        ("--max-queue", int, f"answers that may wait ({d.queue})"),
        ("--max-answers", int, f"answers to one request ({d.answers})"),
        ("--time", float, f"seconds for a request ({d.seconds:g})"),
        (
            "--stop-time",
            float,
            f"seconds for answers that run when the server is to stop ({d.stop_seconds:g})",
        ),
    ):
        group.add_argument(name, type=kind, metavar="N", help=words)


def run(options: argparse.Namespace) -> int:
    if options.max_batch < 1:
        raise ArgumentError(f"--max-batch: expected at least 1, got {options.max_batch}")
    given_limits = {
        "body_bytes": options.max_body,
        "prompt_tokens": options.max_prompt,
        "answer_tokens": options.max_answer,
        "queue": options.max_queue,
        "answers": options.max_answers,
        "seconds": options.time,
        "stop_seconds": options.stop_time,
    }
    limits = Limits(**{name: value for name, value in given_limits.items() if value is not None})
    key = options.api_key or getenv("POLYGRAD_API_KEY", "") or None
    model = load_model(options, HFInstance, "can be served", options.max_batch)
    name = options.name or (
        Path(options.model).resolve().name if Path(options.model).is_dir() else options.model
    )
    serve(model, name, options.host, options.port, key, limits, options.log_requests)
    return 0
