from polygrad import Tensor

x = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
y = (x * 2 + 1).sum(axis=1)  # nothing has been computed yet
print("sums of the rows:", y.tolist())
print("softmax:", x.softmax(1).tolist())
print("product with its transpose:", (x @ x.T).tolist())
