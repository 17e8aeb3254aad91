"""The class Tensor: one mixin of methods for each family in the reference. Mixins have no state; `core/` has
what they share."""
