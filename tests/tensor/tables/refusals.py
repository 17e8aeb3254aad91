"""Calls that torch (or numpy) refuses, and so do we: our expression, theirs ("": the same), with these names:

x (2, 3), v (3,), m (3, 3), c (1, 2, 5, 5), w (3, 2, 3, 3) floats; i (2, 3), j (3,) int64; b (2, 3) bool; s of
no axes.
"""

from __future__ import annotations

REFUSALS: list[tuple[str, str]] = [(ours, theirs) for ours, theirs in (
    # shapes that do not broadcast
    *((f"x {op} x[:, :2]", "") for op in ("+", "-", "*", "/", "%", "**", "<", ">=", "==", "!=")),
    *((f"i {op} i[:, :2]", "") for op in ("&", "|", "^", "<<", "//")),
    *((f"x.{f}(x[:, :2])", "") for f in ("maximum", "minimum", "atan2", "fmod", "copysign", "logaddexp", "xlogy", "isclose")),
    ("x.lerp(v[:2], 0.5)", ""), ("b.where(x[:, :2], x)", "torch.where(b, x[:, :2], x)"), ("x.masked_fill(b[:, :2], 1.0)", ""),
    ("b.where(x, x[:, :2])", "torch.where(b, x, x[:, :2])"), ("x.clamp(v[:2], v[:2])", ""),
    # products
    ("x @ x", ""), ("x @ v[:2]", ""), ("v @ x.T[:2]", ""), ("x @ s", ""), ("s @ x", ""), ("m.reshape(1, 3, 3) @ x.reshape(1, 2, 3)", ""),
    ("x.repeat(1, 2).reshape(2, 2, 3) @ x.repeat(1, 3).reshape(3, 3, 2)", ""), ("x.outer(v)", ""), ("v.cross(x[:1, :2])", "torch.linalg.cross(v, x[:1, :2])"),
    ("v[:2].cross(v[:2])", "torch.linalg.cross(v[:2], v[:2])"), ("v.trace()", ""), ("v.tril()", ""), ("v.triu()", ""), ("v.mT", ""),
    ("Tensor.einsum('ij,jk->ik', x, x)", "torch.einsum('ij,jk->ik', x, x)"), ("Tensor.einsum('ij->k', x)", "torch.einsum('ij->k', x)"),
    ("Tensor.einsum('ij,jk', x)", "torch.einsum('ij,jk', x)"), ("Tensor.einsum('ijk->ijk', x)", "torch.einsum('ijk->ijk', x)"),
    ("Tensor.einsum('ij->ii', x)", "torch.einsum('ij->ii', x)"), ("Tensor.einsum('ii->i', x)", "torch.einsum('ii->i', x)"),
    ("x.cdist(x[:, :2])", "torch.cdist(x, x[:, :2])"), ("x.cdist(x, -1.0)", "torch.cdist(x, x, -1.0)"), ("v.cdist(v)", "torch.cdist(v, v)"),
    *((f"x.{f}()", f"torch.linalg.{f}(x)") for f in ("inv", "det", "cholesky", "eigh")), *((f"v.{f}()", f"torch.linalg.{f}(v)") for f in ("inv", "det", "qr", "svd", "cholesky", "eigh")),
    ("m.solve(x)", "torch.linalg.solve(m, x)"), ("x.solve(v)", "torch.linalg.solve(x, v)"), ("m.triangular_solve(x)", "torch.linalg.solve_triangular(m, x, upper=False)"), ("x.qr('full')", "torch.linalg.qr(x, 'full')"),
    # axes that are not there
    *((f"x.{f}({a})", "") for f in ("sum", "mean", "prod", "var", "std", "argmax", "argmin", "softmax", "log_softmax", "logsumexp", "cumsum", "cumprod", "cummax", "cummin", "logcumsumexp") for a in (2, -3)),
    *((f"x.{f}(2)", f"torch.a{f}(x, 2)") for f in ("max", "min")), *((f"b.{f}(2)", "") for f in ("any", "all")),
    ("x.sort(2)", "torch.sort(x, 2)"), ("x.argsort(2)", ""), ("x.topk(1, 2)", ""), ("x.topk(4)", ""), ("x.topk(-1)", ""), ("x.quantile(0.5, 2)", "torch.quantile(x, 0.5, 2)"),
    ("x.quantile(1.5)", "torch.quantile(x, 1.5)"), ("x.quantile(-0.5)", "torch.quantile(x, -0.5)"), ("x.quantile(0.5, 1, interpolation='cubic')", "torch.quantile(x, 0.5, 1, interpolation='cubic')"),
    ("x.sum((0, 0))", ""), ("x.sum((0, -2))", ""), ("x.mean((1, 1))", ""), ("x[:0].max(0)", "torch.amax(x[:0], 0)"), ("x[:0].min()", ""), ("x[:0].argmax()", ""), ("x[:0].max()", ""),
    # movement
    ("x.reshape(4)", ""), ("x.reshape(-1, -1)", ""), ("x.reshape(4, -1)", ""), ("x.reshape(2, -2)", ""), ("x.reshape(0, -1)", ""), ("x.view(5)", ""), ("x.permute(0)", ""), ("x.permute(0, 0)", ""), ("x.permute(0, 2)", ""), ("x.permute(0, 1, 2)", ""),
    ("x.transpose(0, 2)", ""), ("x.transpose(-3, 0)", ""), ("x.flip(2)", ""), ("x.flip(0, 0)", ""), ("x.expand(3, 3)", ""), ("x.expand(3)", ""), ("x.expand(2, 4)", ""), ("x.unsqueeze(3)", ""), ("x.unsqueeze(-4)", ""), ("x.squeeze(2)", ""),
    ("x.flatten(1, 0)", ""), ("x.flatten(0, 2)", ""), ("x.unflatten(1, (2, 2))", ""), ("x.unflatten(2, (1, 1))", ""), ("x.repeat(2)", ""), ("x.roll(1, 2)", ""), ("x.roll((1, 2), (0,))", ""), ("x.chunk(0)", ""), ("x.chunk(2, 2)", ""), ("x.split([1, 1], 1)", ""), ("x.split(-1)", ""),
    ("x.diagonal(0, 0, 0)", ""), ("x.diagonal(0, 0, 2)", ""), ("x.unfold(1, 4, 1)", ""), ("x.unfold(1, 2, 0)", ""), ("x.unfold(2, 1, 1)", ""), ("x.repeat(-1, 1)", ""), ("x.repeat_interleave(-1)", ""), ("m.reshape(1, 3, 3).diag()", ""),
    ("x.cat(m[:, :2])", "torch.cat((x, m[:, :2]))"), ("x.cat(v)", "torch.cat((x, v))"), ("x.cat(x, dim=2)", "torch.cat((x, x), 2)"), ("x.stack(m)", "torch.stack((x, m))"), ("x.stack(x, dim=3)", "torch.stack((x, x), 3)"),
    ("x.pad((1,))", "F.pad(x, (1,))"), ("x.pad((1, 1, 1, 1, 1, 1))", "F.pad(x, (1, 1, 1, 1, 1, 1))"), ("x.pad((-2, -2))", "F.pad(x, (-2, -2))"), ("x.pad((3, 3), 'reflect')", "F.pad(x, (3, 3), 'reflect')"), ("x.pad((4, 0), 'circular')", "F.pad(x, (4, 0), 'circular')"), ("x.pad((1, 1), 'mirror')", "F.pad(x, (1, 1), 'mirror')"),
    # indexing
    ("x[2]", ""), ("x[-3]", ""), ("x[0, 3]", ""), ("x[0, 0, 0]", ""), ("s[0]", ""), ("x[..., 0, ...]", "numpy.ones((2, 3))[..., 0, ...]"), ("x[1.5]", ""), ("x['a']", ""), ("x[::0]", ""), ("x[v]", ""), ("x[i, j[:2]]", ""), ("x[b[:, :2]]", ""), ("x[b[0], b[0]]", ""),
    ("put(x, 0, m)", ""), ("put(x, 5, 1.0)", ""), ("put(x, (0, 0, 0), 1.0)", ""), ("put(x, slice(0, 1), x[:, :2])", ""), ("put(x, b, v)", ""),
    ("x.gather(2, i)", ""), ("x.gather(0, j)", ""), ("x.gather(0, v)", ""), ("x.gather(1, i.repeat(2, 1))", ""), ("x.gather(0, x)", ""), ("x.scatter(2, i, x)", ""), ("x.scatter(0, j, v)", ""), ("x.scatter(0, x, x)", ""), ("x.scatter(0, i, x[:, :2])", ""), ("x.scatter(0, i, x, reduce='max')", ""),
    ("x.scatter_reduce(0, i, x.double(), 'sum')", ""), ("x.scatter_reduce(2, i, x, 'sum')", ""), ("x.masked_select(i)", ""), ("x.masked_select(b[:, :2])", ""), ("x.one_hot(3)", "F.one_hot(x, 3)"), ("i.one_hot(-2)", "F.one_hot(i, -2)"),
    ("x.bincount()", "torch.bincount(x)"), ("i.bincount()", "torch.bincount(i)"), ("x.histc(0)", "torch.histc(x, 0)"), ("x.histc(5, 2, 1)", "torch.histc(x, 5, 2, 1)"), ("x.searchsorted(m)", "torch.searchsorted(x, m)"),
    # dtypes
    *((f"x {op} x", "") for op in ("&", "|", "^", "<<", ">>")), ("~x", ""), ("x & 1", ""), ("b - b", ""), ("i ** -1", "numpy.ones((2, 3), int) ** -1"), ("x.cast('float31')", "x.to(torch.float31)"), ("x.bitcast('int64')", "x.view(torch.int64)"), ("b[:, :1].bitcast('int32')", "b[:, :1].view(torch.int32)"),
    ("Tensor(['a'])", "torch.tensor(['a'])"), ("Tensor([[1, 2], [3]])", "torch.tensor([[1, 2], [3]])"), ("Tensor([1, None])", "torch.tensor([1, None])"), ("Tensor([300], dtype='uint8')", "numpy.array([300], dtype='uint8')"), ("Tensor([-1], dtype='uint8')", "numpy.array([-1], dtype='uint8')"), ("Tensor([1], dtype='int8') + 128", "numpy.array([1], dtype='int8') + 128"),
    ("Tensor({1, 2})", "torch.tensor({1, 2})"), ("x + 'a'", ""), ("x * {}", ""), ("x < 'a'", ""), ("Tensor([1], dtype=3)", "torch.tensor([1], dtype=3)"),
    # creation and random numbers
    ("Tensor.zeros(-1)", "torch.zeros(-1)"), ("Tensor.ones(2, -3)", "torch.ones(2, -3)"), ("Tensor.arange(0, 5, 0)", "torch.arange(0, 5, 0)"), ("Tensor.linspace(0, 1, -1)", "torch.linspace(0, 1, -1)"), ("Tensor.eye(-1)", "torch.eye(-1)"),
    ("Tensor.full((2,), 'a')", "torch.full((2,), 'a')"), ("Tensor.rand(3, dtype='int32')", "torch.rand(3, dtype=torch.int32)"), ("Tensor.randint(3, low=5, high=5)", "torch.randint(5, 5, (3,))"), ("Tensor.normal(3, std=-1.0)", "torch.normal(0.0, -1.0, (3,))"), ("Tensor.uniform(3, low=2.0, high=1.0)", "torch.empty(3).uniform_(2.0, 1.0)"), ("Tensor.randperm(-1)", "torch.randperm(-1)"),
    ("v.multinomial(4)", "torch.multinomial(v, 4)"), ("v.multinomial(0)", "torch.multinomial(v, 0)"),
    # convolution and pooling
    ("c.conv2d(w[:, :1])", "F.conv2d(c, w[:, :1])"), ("c.conv2d(w, groups=2)", "F.conv2d(c, w, groups=2)"), ("c[:, :, :2, :2].conv2d(w)", "F.conv2d(c[:, :, :2, :2], w)"), ("c.conv2d(w, v[:2])", "F.conv2d(c, w, v[:2])"), ("c.conv2d(w, stride=0)", "F.conv2d(c, w, stride=0)"), ("c.conv2d(w, dilation=0)", "F.conv2d(c, w, dilation=0)"), ("x.conv2d(w)", "F.conv2d(x, w)"), ("c.conv2d(w, padding=(1, 1, 1))", "F.conv2d(c, w, padding=(1, 1, 1))"),
    ("c.conv2d(w, stride=(1, 1, 1))", "F.conv2d(c, w, stride=(1, 1, 1))"), ("c.conv_transpose2d(w[:1])", "F.conv_transpose2d(c, w[:1])"), ("c.conv_transpose2d(w[:2], stride=0)", "F.conv_transpose2d(c, w[:2], stride=0)"), ("c.conv_transpose2d(w[:2], output_padding=3)", "F.conv_transpose2d(c, w[:2], output_padding=3)"),
    ("c.max_pool2d(6)", "F.max_pool2d(c, 6)"), ("c.max_pool2d(2, 0)", "numpy.lib.stride_tricks.sliding_window_view(c.numpy(), (6, 6), (2, 3))"), ("v.max_pool2d(2)", "F.max_pool2d(v, 2)"), ("c.avg_pool2d(6)", "F.avg_pool2d(c, 6)"), ("c.max_pool2d(0)", "F.max_pool2d(c, 0)"), ("c.avg_pool2d(0)", "F.avg_pool2d(c, 0)"),
    ("c.interpolate((0, 2))", "F.interpolate(c, (0, 2), mode='bilinear')"), ("c.interpolate((2, 2), 'cubism')", "F.interpolate(c, (2, 2), mode='cubism')"), ("c.interpolate()", "F.interpolate(c)"), ("c.interpolate((2, 2), scale_factor=2.0)", "F.interpolate(c, (2, 2), scale_factor=2.0)"),
    # activations, normalisation, attention, losses
    ("x.gelu('erf')", "F.gelu(x, approximate='erf')"), ("x.clamp()", ""), ("x.dropout(1.5)", "F.dropout(x, 1.5)"), ("x.dropout(-0.1)", "F.dropout(x, -0.1)"), ("x.layernorm(2)", "F.layer_norm(x, (3, 3))"), ("x.normalize(2.0, 2)", "F.normalize(x, 2.0, 2)"),
    ("x.scaled_dot_product_attention(x[:, :2], x)", "F.scaled_dot_product_attention(x, x[:, :2], x)"), ("x.scaled_dot_product_attention(x, m)", "F.scaled_dot_product_attention(x, x, m)"), ("x.scaled_dot_product_attention(x, x, b, is_causal=True)", "F.scaled_dot_product_attention(x, x, x, b, is_causal=True)"), ("x.scaled_dot_product_attention(x, x, b)", "F.scaled_dot_product_attention(x, x, x, b)"),
    ("x.cross_entropy(j)", "F.cross_entropy(x, j)"), ("x.cross_entropy(m)", "F.cross_entropy(x, m)"), ("x.cross_entropy(j[:2], reduction='median')", "F.cross_entropy(x, j[:2], reduction='median')"), ("x.cross_entropy(j[:2], label_smoothing=2.0)", "F.cross_entropy(x, j[:2], label_smoothing=2.0)"), ("x.cross_entropy(j[:2], weight=v[:2])", "F.cross_entropy(x, j[:2], v[:2])"),
    ("x.nll_loss(j)", "F.nll_loss(x, j)"), ("x.nll_loss(j[:2], v[:2])", "F.nll_loss(x, j[:2], v[:2])"), ("x.nll_loss(j[:2], reduction='median')", "F.nll_loss(x, j[:2], reduction='median')"), ("x.huber_loss(x, 'mean', -1.0)", "F.huber_loss(x, x, 'mean', -1.0)"), ("x.huber_loss(x[:, :2])", "F.huber_loss(x, x[:, :2])"), ("x.kl_div(m)", "F.kl_div(x, m)"), ("x.kl_div(x, 'median')", "F.kl_div(x, x, reduction='median')"),
    ("x.binary_crossentropy(m)", "F.binary_cross_entropy(x, m)"), ("x.binary_crossentropy_logits(m)", "F.binary_cross_entropy_with_logits(x, m)"), ("x.binary_crossentropy_logits(x, 'median')", "F.binary_cross_entropy_with_logits(x, x, reduction='median')"), ("x.sparse_categorical_crossentropy(j)", "F.cross_entropy(x, j)"),
    # Fourier transforms
    ("x.fft()", "torch.view_as_complex(x)"), ("c[..., :2].fft(0)", "torch.fft.fft(c, 0)"), ("x.rfft(0)", "torch.fft.rfft(x, 0)"), ("x.rfft(norm='best')", "torch.fft.rfft(x, norm='best')"), ("x.rfft(dim=2)", "torch.fft.rfft(x, dim=2)"), ("s.rfft()", "torch.fft.rfft(s)"), ("c[..., :2].irfft(-1)", "torch.fft.irfft(c, -1)"),
    # reading and gradients
    ("x.item()", ""), ("bool(x)", ""), ("int(x)", ""), ("float(v)", ""), ("len(s)", ""), ("x.backward()", "x.sum(0).requires_grad_().backward()"), ("next(iter(s))", ""), ("x.assign(m)", "x.copy_(m)"), ("x.gradient(x)", "torch.autograd.grad(x, x)"),
    ("x.to('quantum')", ""),
    # padding and windows
    ("x.pad([[1, 1], [1]])", "numpy.pad(x, [[1, 1], [1]])"), ("x.pad([[1, 1], 3])", "numpy.pad(x, [[1, 1], 3])"), ("x.pad([[1, 1], [1, 2, 3]])", "numpy.pad(x, [[1, 1], [1, 2, 3]])"),
    ("c.pool((2, 2), 0)", "F.max_pool2d(c, 2, 0)"), ("c.pool((2, 2), 1, 0)", "F.max_pool2d(c, 2, 1, 0, 0)"),
)]  # fmt: skip
