"""Device EMULATED_CUDA."""

from tests.gpu_emulation.device import backend_of

BACKEND = backend_of("cuda")
