"""Device EMULATED_MSL."""

from tests.gpu_emulation.device import backend_of

BACKEND = backend_of("msl")
