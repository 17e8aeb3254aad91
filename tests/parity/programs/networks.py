"""Multi-layer perceptrons, optimizers' steps, recurrent networks, and gradients of gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.parity.inputs import Inputs
from tests.parity.programs.registry import program, with_gradients


def mlp(x: Any, p: list[Any]) -> Any:
    return (x @ p[0] + p[1]).relu() @ p[2] + p[3]


def mlp_parameters(make: Inputs) -> list[Any]:
    return [make.normal(*shape, scale=0.3) for shape in ((12, 16), (16,), (16, 10), (10,))]


@program
def mlp_forward(lib: Any, make: Inputs) -> list[Any]:
    return [mlp(make.normal(8, 12), mlp_parameters(make))]


@program
def mlp_backward(lib: Any, make: Inputs) -> list[Any]:
    x, labels, parameters = make.normal(8, 12), make.integers(10, 8), mlp_parameters(make)
    loss = mlp(x, parameters).sparse_categorical_crossentropy(labels)
    return [loss, *loss.gradient(*parameters)]


def second_step(lib: Any, make: Inputs, optimizer: Callable[[list[Any]], Any]) -> list[Any]:
    """A step of training an MLP, after one that put the optimizer's state into its buffers."""
    x, labels, parameters = make.normal(8, 12), make.integers(10, 8), mlp_parameters(make)
    chosen = optimizer(parameters)
    outputs: list[Any] = []
    for step in range(2):
        chosen.zero_grad()
        loss = mlp(x, parameters).sparse_categorical_crossentropy(labels).backward()
        outputs = [loss, *chosen.schedule_step()]
        if step == 0:
            outputs[0].realize(*outputs[1:])
    return outputs


@program
def sgd_step(lib: Any, make: Inputs) -> list[Any]:
    return second_step(lib, make, lambda p: lib.nn.optim.SGD(p, lr=0.1))


@program
def sgd_weight_decay_step(lib: Any, make: Inputs) -> list[Any]:
    return second_step(lib, make, lambda p: lib.nn.optim.SGD(p, lr=0.1, weight_decay=0.01))


@program
def momentum_step(lib: Any, make: Inputs) -> list[Any]:
    return second_step(lib, make, lambda p: lib.nn.optim.SGD(p, lr=0.1, momentum=0.9))


@program
def nesterov_step(lib: Any, make: Inputs) -> list[Any]:
    return second_step(lib, make, lambda p: lib.nn.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True))


@program
def adam_step(lib: Any, make: Inputs) -> list[Any]:
    return second_step(lib, make, lambda p: lib.nn.optim.Adam(p, lr=0.01))


@program
def adamw_step(lib: Any, make: Inputs) -> list[Any]:
    return second_step(lib, make, lambda p: lib.nn.optim.AdamW(p, lr=0.01))


@program
def gelu_block_backward(lib: Any, make: Inputs) -> list[Any]:
    x, up, down = make.normal(8, 12), make.normal(12, 24), make.normal(24, 12)
    return with_gradients(make, (x @ up).gelu() @ down, x, up, down)


@program
def gated_silu_block_backward(lib: Any, make: Inputs) -> list[Any]:
    x, gate, up, down = make.normal(8, 12), make.normal(12, 24), make.normal(12, 24), make.normal(24, 12)
    return with_gradients(make, ((x @ gate).silu() * (x @ up)) @ down, x, gate, up, down)


@program
def activations(lib: Any, make: Inputs) -> list[Any]:
    x = make.normal(4, 16)
    y = x.sigmoid() + x.tanh() + x.elu() + x.leaky_relu() + x.softplus() + x.mish()
    return [y, x.hardswish().relu6()]


@program
def autoencoder_backward(lib: Any, make: Inputs) -> list[Any]:
    """Tied weights: each is used twice."""
    x, a, b = make.normal(8, 20), make.normal(20, 10, scale=0.3), make.normal(10, 4, scale=0.3)
    rebuilt = (((x @ a).tanh() @ b).tanh() @ b.transpose()).tanh() @ a.transpose()
    loss = (rebuilt - x).square().mean()
    return [loss, *loss.gradient(a, b)]


@program
def variational_autoencoder_backward(lib: Any, make: Inputs) -> list[Any]:
    x, noise = make.normal(8, 20), make.normal(8, 4)
    encoder, decoder = make.normal(20, 8, scale=0.3), make.normal(4, 20, scale=0.3)
    mean, log_var = (x @ encoder).chunk(2, dim=1)
    rebuilt = ((mean + (0.5 * log_var).exp() * noise) @ decoder).sigmoid()
    divergence = -0.5 * (1 + log_var - mean * mean - log_var.exp()).sum()
    loss = (rebuilt - x).square().sum() + divergence
    return [loss, *loss.gradient(encoder, decoder)]


@program
def recurrent_chain(lib: Any, make: Inputs) -> list[Any]:
    x, inner, outer = make.normal(4, 6, 8), make.normal(8, 10), make.normal(10, 10, scale=0.3)
    h = make.zeros(4, 10)
    for t in range(6):
        h = (x[:, t] @ inner + h @ outer).tanh()
    return [h]


@program
def recurrent_chain_backward(lib: Any, make: Inputs) -> list[Any]:
    x, inner, outer = make.normal(4, 4, 8), make.normal(8, 10), make.normal(10, 10, scale=0.3)
    h = make.zeros(4, 10)
    for t in range(4):
        h = (x[:, t] @ inner + h @ outer).tanh()
    return with_gradients(make, h, inner, outer)


@program
def long_short_term_memory(lib: Any, make: Inputs) -> list[Any]:
    x, inner, outer = make.normal(4, 3, 8), make.normal(8, 40), make.normal(10, 40, scale=0.3)
    h, c = make.zeros(4, 10), make.zeros(4, 10)
    for t in range(3):
        i, f, g, o = (x[:, t] @ inner + h @ outer).chunk(4, dim=1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
    return [h, c]


@program
def long_short_term_memory_backward(lib: Any, make: Inputs) -> list[Any]:
    x, inner, outer = make.normal(4, 2, 8), make.normal(8, 40), make.normal(10, 40, scale=0.3)
    h, c = make.zeros(4, 10), make.zeros(4, 10)
    for t in range(2):
        i, f, g, o = (x[:, t] @ inner + h @ outer).chunk(4, dim=1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
    return with_gradients(make, h, inner, outer)


@program
def gradient_of_gradient(lib: Any, make: Inputs) -> list[Any]:
    """The norm of an MLP's input gradient, differentiated (WGAN's penalty)."""
    x, a, b = make.normal(8, 12), make.normal(12, 16, scale=0.3), make.normal(16, 1)
    (inner,) = ((x @ a).tanh() @ b).sum().gradient(x)
    penalty = (((inner * inner).sum(1) + 1e-6).sqrt() - 1).square().mean()
    return [penalty, *penalty.gradient(a, b)]
