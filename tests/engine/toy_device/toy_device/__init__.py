"""A device from another package, for tests/engine/test_devices.py."""
