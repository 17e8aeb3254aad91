"""The class Tensor: a mixin of methods for each family of the reference. None has state; `core/` has what
they share."""
