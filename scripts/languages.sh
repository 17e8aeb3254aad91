#!/usr/bin/env bash
# The languages of libpolygrad's bindings: Rust, Go and R. Installs Debian's when root on Debian; elsewhere the tests
# of those that are missing are skipped. Julia is not among its packages: a linter from PyPI reads the code.
set -euo pipefail

declare -A packages=([cargo]="rustc-web cargo-web" [go]=golang-go [R]=r-base-core)
missing=()
for tool in "${!packages[@]}"; do
  command -v "$tool" > /dev/null || missing+=(${packages[$tool]})
done
if [ "${#missing[@]}" != 0 ] && [ "$(id -u)" = 0 ] && grep -qs '^ID=debian' /etc/os-release; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi
.venv/bin/pip install --quiet fatou==0.24.0
