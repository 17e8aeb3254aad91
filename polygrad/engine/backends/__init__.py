"""What each device is made of: a module that defines `BACKEND` (`engine/devices.py`) for each, and its
Target."""
