import time

from js import plot  # the curve below the output

from polygrad import Tensor, compile_step, nn

# Forward, backward and the optimizer together, compiled once into one program of WebAssembly.
Tensor.manual_seed(0)
model = [nn.Linear(1, 64), nn.Linear(64, 1)]
optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.01)
x = Tensor.linspace(-3, 3, 256).reshape(256, 1).realize()
y = (x * 2).sin().realize()


def loss(layers, x, y):
    return ((layers[1](layers[0](x).tanh()) - y) ** 2).mean()


step = compile_step(loss, model, optimizer, x, y)
print(step.n_kernels, "kernels a step,", step.arena_bytes, "bytes of intermediates")
start = time.perf_counter()
for i in range(2000):
    step.run(x, y)
    if i % 10 == 0:
        plot(step.loss_value())
print(round(2000 / (time.perf_counter() - start)), "steps a second, loss", step.loss_value())
