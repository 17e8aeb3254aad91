"""Gives vectors of texts, by an encoder such as MiniLM: a line of numbers for each text.

polygrad embed sentence-transformers/all-MiniLM-L6-v2 "a cat" "a dog" --json
polygrad embed ./my-encoder --file sentences.txt --output vectors.npy

How tokens' vectors become a text's is read from the model's files; without them it is their mean.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from polygrad.cli.hosts import write
from polygrad.cli.models import add_model_arguments, lines_of, load_model, tell
from polygrad.cli.npy import to_npy
from polygrad.hf.text_encoders import TextEncoder

NAME = "embed"
HELP = "give vectors of texts"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)
    parser.add_argument("texts", nargs="*", help="the texts")
    parser.add_argument("--file", metavar="FILE", help='a file with a text on each line; "-": standard input')
    parser.add_argument(
        "--output", metavar="FILE", help="write the vectors to a .npy file, float32 (n, size)"
    )
    parser.add_argument("--json", action="store_true", help="write JSON")


def run(options: argparse.Namespace) -> int:
    texts = lines_of(options.texts, options.file)
    model = load_model(options, TextEncoder, "embeds texts")
    begin = time.perf_counter()
    vectors = model.embed(texts)
    elapsed = time.perf_counter() - begin
    if options.output:
        Path(options.output).write_bytes(to_npy(vectors))
    elif options.json:
        write(json.dumps({"texts": texts, "embeddings": vectors.tolist()}))
    else:
        write("\n".join(" ".join(f"{x:.7g}" for x in row) for row in vectors.tolist()))
    tell(f"[{len(texts)} texts, {vectors.shape[1]} numbers each, {len(texts) / elapsed:.1f} texts/s]")
    return 0
