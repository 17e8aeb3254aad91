from polygrad import Tensor


def f(x):
    return x.sin() * x * x


# The slope of sin(x) * x * x, and how it compares with a difference quotient.
x = Tensor([-1.0, 0.0, 0.5, 2.0])
f(x).sum().backward()
h = 1e-3
print("gradient:  ", x.grad.tolist())
print("difference:", ((f(x + h) - f(x - h)) / (2 * h)).tolist())
