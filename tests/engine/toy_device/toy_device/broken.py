"""BROKEN: its package is incomplete."""

import a_package_that_nobody_has  # noqa: F401

BACKEND = None
