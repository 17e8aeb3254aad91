#!/usr/bin/env bash
# What finds Vulkan drivers, for device WEBGPU under CPython and in Node: Debian's package when root on Debian. Without a
# GPU its work is done by the SwiftShader that Debian's Chromium comes with.
set -euo pipefail
if ldconfig -p 2>/dev/null | grep -q 'libvulkan\.so\.1' || [ "$(uname)" != Linux ]; then
  exit 0
fi
if [ "$(id -u)" = 0 ] && grep -qs '^ID=debian' /etc/os-release; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends libvulkan1
else
  echo "vulkan: expected libvulkan.so.1, got none: tests of device WEBGPU will be skipped" >&2
fi
