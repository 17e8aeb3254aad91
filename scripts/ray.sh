#!/usr/bin/env bash
# The slow tests of Ray need it: 100 MB with what it needs, so it is not among the packages of `make test`.
set -euo pipefail

.venv/bin/pip install --quiet "ray[train,data]==2.60.0"
