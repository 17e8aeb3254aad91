"""Signs exported files, so that who loads one can tell that it is yours and was not changed.

polygrad sign --make-key signing.key           a new key: signing.key, which you keep, and signing.pub
polygrad sign model.pgrd --key signing.key     writes model.pgrd.minisig, which belongs beside the file
polygrad inspect model.pgrd --public-key signing.pub

Loaders of `polygrad.export` take a `public_key`, those of `polygrad/runtime` in JavaScript a `publicKey`. The
files are minisign's: `minisign -Vm model.pgrd -p signing.pub` verifies one, and keys that `minisign -G` made
sign, too. It needs pip install "polygrad[signatures]".
"""

from __future__ import annotations

import argparse
from pathlib import Path

from polygrad.cli.hosts import write
from polygrad.cli.keys import make_key, sign_exported
from polygrad.errors import ArgumentError
from polygrad.export.signing import SUFFIX

NAME = "sign"
HELP = "sign exported files, or make the key for it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("models", nargs="*", metavar="model", help="a .pgrd file")
    parser.add_argument("--key", help="the file of the secret key that signs")
    parser.add_argument("--comment", default="", help="a line that is signed with the file: its version, say")
    parser.add_argument("--make-key", metavar="KEY", help="write a new secret key to this file")
    parser.add_argument("--no-password", action="store_true", help="the new key needs no password")


def run(options: argparse.Namespace) -> int:
    if options.make_key is not None:
        if options.models or options.key is not None:
            raise ArgumentError("--make-key: expected no file to sign with it, got one")
        public_key = make_key(options.make_key, not options.no_password)
        write(f"{options.make_key} signs: keep it to yourself\nthe public key: {public_key}")
        return 0
    if options.key is None or not options.models:
        raise ArgumentError("sign: expected files and the --key that signs them, or --make-key")
    for model in options.models:
        sign_exported(Path(model), options.key, options.comment)
        write(f"{model}{SUFFIX}")
    return 0
