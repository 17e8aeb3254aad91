"""The Backends of the built-in devices: a module for each, which defines `BACKEND` (`engine/devices.py`) and
the Target."""
