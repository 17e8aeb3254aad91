"""The entry point of the command line: finds the commands, parses the arguments, runs one command.

Exit status: 0 for success, 1 if a command reports a failure, 2 for invalid arguments, 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import os
import pkgutil
import sys
from collections.abc import Sequence
from types import ModuleType

from polygrad.cli import commands
from polygrad.errors import PolygradError


def find_commands() -> list[ModuleType]:
    """The modules in `commands/`, by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(commands.__path__))
    return [importlib.import_module(f"{commands.__name__}.{name}") for name in names]


def main(version: str, arguments: Sequence[str] | None = None) -> int:
    """Run the command in `arguments` (by default the process's); returns its exit status."""
    parser, default = _parser(version, find_commands())
    argument_list = list(sys.argv[1:] if arguments is None else arguments)
    if not argument_list or (
        argument_list[0].startswith("-") and argument_list[0] not in ("-h", "--help", "--version")
    ):
        argument_list.insert(0, default)
    options = parser.parse_args(argument_list)
    options.version = version
    try:
        status: int = options.run(options)
    except BrokenPipeError:  # the reader of the output closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as e:
        place = "" if e.filename is None else f"{e.filename}: "
        print(f"polygrad: {place}{e.strerror or e}", file=sys.stderr)
        return 1
    except PolygradError as e:
        print(f"polygrad: {e}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return status


def _parser(version: str, modules: Sequence[ModuleType]) -> tuple[argparse.ArgumentParser, str]:
    """The parser of all commands, and the name of the one that runs by default."""
    parser = argparse.ArgumentParser(prog="polygrad", description="polygrad: a tensor compiler in Python.")
    parser.add_argument("--version", action="version", version=f"polygrad {version}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    default = ""
    for module in modules:
        command = subparsers.add_parser(
            module.NAME,
            help=module.HELP,
            description=inspect.cleandoc(module.__doc__ or ""),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
        if getattr(module, "DEFAULT", False):
            default = module.NAME
    return parser, default
