"""`python -m polygrad`, and the console script `polygrad`: see `polygrad/cli`."""

from __future__ import annotations

import sys

from polygrad import __version__
from polygrad.cli import main as cli


def main() -> int:
    return cli.main(__version__)


if __name__ == "__main__":
    sys.exit(main())
