"""One file per library: the programs that the suites time, each in the library's own idiom.

A library offers `make(kind, sizes) -> Program`. The inputs come from `inputs.uniform` with the same seeds
everywhere, so every library must compute the same numbers; shapes and seeds of each kind:

- `matmul` m, k, n: 1 (m, k) @ 2 (k, n).
- `softmax`, `gelu` (tanh form), `layernorm` rows, columns: of 1, over the last axis; weight 2, bias 3.
- `chain` n: 20 operations on 1, see `inputs.CHAIN`.
- `copy` n: of 1 into an array that is there already.
- `mlp`: SGD on softmax cross-entropy of 1 (64, 784) -> 128 -> ReLU -> 10; weights 2, 4, biases 3, 5.
- `convnet`: SGD, 1 (64, 1, 28, 28) -> 16 of 3x3 -> ReLU -> 32 of 3x3 -> ReLU -> 2x2 max pool -> 10; weights
  2, 4, 6 and biases 3, 5, 7.
- `block-forward`, `block-backward`: a GPT-2 block, see `inputs.BLOCK`; backward is forward and the gradients
  of sum(output * 14) for the input and all parameters.
"""
