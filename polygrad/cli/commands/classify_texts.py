"""Gives the labels of texts with their probabilities, by a model that was trained for it.

polygrad classify ./my-classifier "What a day!" "Never again."
polygrad classify ./my-classifier --file reviews.txt --json

Each line has the likeliest label, its probability and the text; with --json it is an object with all labels.
"""

from __future__ import annotations

import argparse
import json
import time

from polygrad.cli.hosts import write
from polygrad.cli.models import add_model_arguments, lines_of, load_model, tell
from polygrad.hf.text_encoders import TextClassifier

NAME = "classify"
HELP = "give labels of texts"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)
    parser.add_argument("texts", nargs="*", help="the texts")
    parser.add_argument("--file", metavar="FILE", help='a file with a text on each line; "-": standard input')
    parser.add_argument("--json", action="store_true", help="write JSON, an object for each text")


def run(options: argparse.Namespace) -> int:
    texts = lines_of(options.texts, options.file)
    model = load_model(options, TextClassifier, "gives labels")
    begin = time.perf_counter()
    classifications = model.classify(texts)
    elapsed = time.perf_counter() - begin
    for text, labels in zip(texts, classifications, strict=True):
        best = max(labels, key=labels.__getitem__)
        if options.json:
            write(json.dumps({"text": text, "label": best, "probabilities": labels}))
        else:
            write(f"{best}\t{labels[best]:.4f}\t{text}")
    tell(f"[{len(texts)} texts, {len(texts) / elapsed:.1f} texts/s]")
    return 0
