"""Goes on with a text, as it is: no chat template. Writes the answer as it comes.

polygrad generate ./my-model "Once upon a time" --max-new-tokens 50
polygrad generate Qwen/Qwen2-0.5B "The capital of France is" --temperature 0.7 --seed 1
echo "Dear Sir," | polygrad generate ./my-model -
polygrad generate ./my-model "List three colours:" --schema '{"type": "array"}' --json

How fast it was is said on standard error. With --json one object is written, with --json --stream one a line
for each piece, and a last one with the numbers.
"""

from __future__ import annotations

import argparse
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
from polygrad.errors import ArgumentError
from polygrad.generation.requests import join_pieces
from polygrad.hf.instances import LanguageModel

NAME = "generate"
HELP = "go on with a text"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)
    parser.add_argument("prompt", help='the text to go on with; "-": all of standard input')
    add_sampling_arguments(parser)
    group = parser.add_argument_group("what the answer is")
    group.add_argument("--schema", metavar="JSON", help="a JSON schema that the answer follows")
    group.add_argument("--regex", metavar="PATTERN", help="a regular expression that the answer matches")
    parser.add_argument("--json", action="store_true", help="write JSON")
    parser.add_argument("--stream", action="store_true", help="with --json: a line for each piece")


def run(options: argparse.Namespace) -> int:
    if options.schema and options.regex:
        raise ArgumentError("--regex: expected either this or --schema, got both")
    if options.stream and not options.json:
        raise ArgumentError("--stream: expected --json, too: text always comes piece by piece")
    prompt = sys.stdin.read() if options.prompt == "-" else options.prompt
    model = load_model(options, LanguageModel, "writes text")
    sampling: dict[str, Any] = sampling_options(options)
    if options.schema:
        sampling["grammar"] = model.json_schema(options.schema)
    if options.regex:
        sampling["grammar"] = model.regular_expression(options.regex)
    request = model.request(prompt, **sampling)
    speed, pieces = Speed(), []
    for piece in speed.watch(model.run(request)):
        pieces.append(piece)
        if not options.json:
            show(piece.text)
        elif options.stream:
            write(json.dumps({"text": piece.text, "tokens": piece.tokens}))
            sys.stdout.flush()
    answer = join_pieces(pieces, len(request.tokens))
    end = {
        "finish_reason": answer.finish_reason,
        "prompt_tokens": answer.prompt_tokens,
        "answer_tokens": len(answer.tokens),
        **speed.numbers(),
    }
    if options.json:
        answer_fields = {} if options.stream else {"text": answer.text, "tokens": answer.tokens}
        del end["tokens"]
        write(json.dumps({**answer_fields, **end}))
    else:
        write("")
        tell(f"[{answer.finish_reason}: {speed}]")
    return 0
