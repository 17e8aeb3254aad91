from js import plot  # the curve below the output

from polygrad import Tensor, nn

Tensor.manual_seed(0)
inputs = Tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
wanted = Tensor([[0.0], [1.0], [1.0], [0.0]])
hidden, out = nn.Linear(2, 16), nn.Linear(16, 1)


def model(x):
    return out(hidden(x).tanh()).sigmoid()


optimizer = nn.optim.Adam(nn.state.get_parameters([hidden, out]), lr=0.05)
with Tensor.train():
    for _ in range(150):
        optimizer.zero_grad()
        loss = ((model(inputs) - wanted) ** 2).mean().backward()
        optimizer.step()
        plot(loss.item())
print("xor:", [round(p) for [p] in model(inputs).tolist()])
