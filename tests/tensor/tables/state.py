"""What random programs are made of (see state_programs): expressions that are ours and torch's."""

from __future__ import annotations

# Expressions of x, y (of the shape of x), a (an axis) and k (an int of 0 to 3): ours, torch's ("": the same).
# What is exact for integers, so that no rounding decides what is compared.
EXACT = [
    ("x + y", ""), ("x * 3 - y", ""), ("x.maximum(y)", ""), ("x.minimum(y)", ""), ("(x < y).where(x, y)", "torch.where(x < y, x, y)"),
    ("x.clamp(-5, 5)", ""), ("x.abs()", ""), ("x.sign()", ""), ("x.eq(y).int()", ""), ("x // 3", ""), ("x % 5", ""), ("x & y", ""), ("x ^ 5", ""),
    ("x.sum(a)", "x.sum(a, dtype=torch.int32)"), ("x.max(a)", "x.amax(a)"), ("x.min(a, keepdim=True)", "x.amin(a, keepdim=True)"),
    ("x.argmax(a)", "x.argmax(a).int()"), ("x.any(a).int()", "x.bool().any(a).int()"), ("x.clamp(-2, 2).prod(a)", "x.clamp(-2, 2).prod(a, dtype=torch.int32)"),
    ("x.cumsum(a)", "x.cumsum(a, dtype=torch.int32)"), ("x.cummax(a)[0]", "torch.cummax(x, a)[0]"), ("x.diff(dim=a)", ""),
    ("x.sort(a)[0]", ""), ("x.sort(a, descending=True)[0]", ""), ("x.argsort(a)", "torch.sort(x, dim=a, stable=True)[1].int()"),
    ("x.kthvalue(1, a)[0]", ""), ("x.mode(a)[0]", ""), ("x.topk(1, a)[0]", ""), ("x.median(a)[0]", ""),
    ("x.flip(a) + 0", ""), ("x.roll(k, a)", ""), ("x.transpose(a, 0)", ""), ("x.unsqueeze(a).squeeze(a)", ""), ("x.flatten() + 0", ""),
    ("x.cat(y, dim=a)", "torch.cat((x, y), a)"), ("x.stack(y, dim=a).flatten(a, a + 1)", "torch.stack((x, y), a).flatten(a, a + 1)"),
    ("x.repeat_interleave(2, a)", ""), ("x.unfold(a, 1, 2).flatten(-2) + 0", ""), ("x.pad((1, k))", "F.pad(x, (1, k))"), ("x.movedim(a, 0)", ""),
    ("x.gather(a, y.abs() % x.shape[a])", "x.gather(a, (y.abs() % x.shape[a]).long())"), ("x.index_select(a, Tensor([0, 0]))", "x.index_select(a, torch.tensor([0, 0]))"),
    ("x.scatter_reduce(a, y.abs() % x.shape[a], y, 'sum')", "x.scatter_reduce(a, (y.abs() % x.shape[a]).long(), y, 'sum')"),
    ("x.scatter_reduce(a, y.abs() % x.shape[a], y, 'amax', False)", "x.scatter_reduce(a, (y.abs() % x.shape[a]).long(), y, 'amax', include_self=False)"),
    ("x.masked_fill(y < 0, 7)", ""), ("x.masked_select(y > 0)", ""), ("(x > 2).nonzero()", "(x > 2).nonzero().int()"), ("x.unique()", ""),
    ("x.take(y.abs() % x.numel())", "x.take((y.abs() % x.numel()).long())"), ("x.flatten()[::2] + 0", ""), ("x.flatten()[-1:].expand(3) + 0", ""),
    ("x.cast('int8').cast('int32')", "x.to(torch.int8).to(torch.int32)"), ("x.cast('uint8').cast('int32')", "x.to(torch.uint8).to(torch.int32)"),
    ("x.cast('int64').cast('int16').cast('int32')", "x.to(torch.int64).to(torch.int16).to(torch.int32)"), ("x.clamp(-2048, 2048).cast('float16').cast('int32')", "x.clamp(-2048, 2048).half().int()"),
    ("x.double().int()", ""), ("x.bool().int()", ""), ("x.float().bitcast('int32')", "x.float().view(torch.int32)"), ("x.gcd(y)", ""), ("x.one_hot(4).sum(-1)", "((x >= 0) & (x < 4)).int()"),
    ("(x % 7).float().unsqueeze(-1).matmul((y % 7).float().unsqueeze(-2)).int().sum(-1)", "((x % 7).unsqueeze(-1) * (y % 7).unsqueeze(-2)).sum(-1, dtype=torch.int32)"),
    ("x.clamp(-999, 999).reshape(1, 1, -1).float().max_pool2d((2,), 1).int().flatten() if x.numel() > 1 else x.flatten() + 0", "F.max_pool1d(x.clamp(-999, 999).reshape(1, 1, -1).float(), 2, 1).int().flatten() if x.numel() > 1 else x.flatten() + 0"),
    ("x.clamp(-999, 999).reshape(1, 1, -1).float().conv2d(Tensor([[[1.0, -2.0]]]), padding=1).int().flatten()", "F.conv1d(x.clamp(-999, 999).reshape(1, 1, -1).float(), torch.tensor([[[1.0, -2.0]]]), padding=1).int().flatten()"),
    ("x.tril() if x.ndim > 1 else x.diag()", "x.tril() if x.ndim > 1 else x.diag()"), ("x.count_nonzero(a)", "x.count_nonzero(a).int()"),
]  # fmt: skip
# Of floats: continuous ones, whose gradients are, too.
SMOOTH = [
    ("x + y", ""), ("x * y", ""), ("x - y * 0.5", ""), ("x / (y * y + 1)", ""), ("x.sin()", ""), ("x.tanh()", ""), ("x.sigmoid()", ""), ("(x * x + 1).sqrt()", ""),
    ("x.exp().log1p()", ""), ("x.erf()", ""), ("x.gelu()", "F.gelu(x, approximate='tanh')"), ("x.softplus()", "F.softplus(x)"), ("x.atan2(y * y + 1)", ""), ("x.silu()", "F.silu(x)"),
    ("x.logaddexp(y)", ""), ("(x * 0.3).i0()", ""), ("(x.sigmoid() + 1).lgamma()", ""), ("(x.sigmoid() + 0.5).digamma()", ""), ("x.lerp(y, 0.25)", ""), ("(x * 0.5).expm1()", ""),
    ("x.sum(a)", ""), ("x.mean(a)", ""), ("x.var(a, correction=0)", ""), ("x.logsumexp(a)", ""), ("x.softmax(a)", ""), ("x.log_softmax(a)", ""), ("(x.sigmoid() + 0.5).prod(a)", ""),
    ("x.cumsum(a) * 0.5", ""), ("(x.sigmoid() + 0.5).cumprod(a)", ""), ("x.logcumsumexp(a)", ""), ("x - x.mean(a, keepdim=True)", ""), ("(x * x + 0.1).norm(2, a)", ""),
    ("x.flip(a) * 1", ""), ("x.roll(k, a)", ""), ("x.transpose(a, 0)", ""), ("x.flatten() + 0", ""), ("x.cat(y, dim=a)", "torch.cat((x, y), a)"), ("x.pad((1, k), value=0.5)", "F.pad(x, (1, k), value=0.5)"),
    ("x.unsqueeze(a).expand([*x.shape[:a], 2, *x.shape[a:]]).sum(a)", ""), ("x.repeat_interleave(2, a)", ""), ("x.diff(dim=a)", ""), ("x[..., ::2]", ""), ("x.unfold(a, 1, 1).flatten(-2) * 1", ""),
    ("x.matmul(y.transpose(-1, -2)) if x.ndim > 1 else x.outer(y)", ""), ("x.layernorm()", "F.layer_norm(x, x.shape[-1:])"), ("x.normalize(dim=a)", "F.normalize(x, dim=a)"),
    ("x.float().double().float()", ""), ("x.rfft().square().sum(-1)", "torch.view_as_real(torch.fft.rfft(x)).square().sum(-1)"), ("x.dot(x).square() if x.ndim == 1 else x.square()", ""),
    ("(x.unsqueeze(-1) * x.unsqueeze(-2) + Tensor.eye(x.shape[-1]) * 3).det()", "torch.linalg.det(x.unsqueeze(-1) * x.unsqueeze(-2) + torch.eye(x.shape[-1]) * 3)"),
    ("(x.unsqueeze(-1) * x.unsqueeze(-2) + Tensor.eye(x.shape[-1]) * 3).solve(y.unsqueeze(-1)).squeeze(-1)", "torch.linalg.solve(x.unsqueeze(-1) * x.unsqueeze(-2) + torch.eye(x.shape[-1]) * 3, y.unsqueeze(-1)).squeeze(-1)"),
    ("x.reshape(1, 1, -1).avg_pool2d((2,), 1).flatten() if x.numel() > 1 else x.flatten() * 1", "F.avg_pool1d(x.reshape(1, 1, -1), 2, 1).flatten() if x.numel() > 1 else x.flatten() * 1"),
    ("x.reshape(1, 1, -1).adaptive_avg_pool1d(3).flatten()", "F.adaptive_avg_pool1d(x.reshape(1, 1, -1), 3).flatten()"), ("x.reshape(1, 1, -1).interpolate(5).flatten()", "F.interpolate(x.reshape(1, 1, -1), 5, mode='linear').flatten()"),
    ("x.reshape(1, 1, -1).conv2d(Tensor([[[0.5, -0.25]]]), padding=1).flatten()", "F.conv1d(x.reshape(1, 1, -1), torch.tensor([[[0.5, -0.25]]]), padding=1).flatten()"),
    ("x.mse_loss(y)", "F.mse_loss(x, y)"), ("x.contiguous()", ""), ("x.detach() + x", ""), ("x.clone()", ""),
]  # fmt: skip
# Views: what is written through them is seen in what they are views of.
VIEWS = [
    ("x.reshape(-1)", "x.view(-1)"), ("x.transpose(a, 0)", ""), ("x[..., 1:]", ""), ("x[..., ::2]", ""), ("x.unsqueeze(a)", ""), ("x[0]", ""),
    ("x.narrow(a, 0, 1)", ""), ("x.detach()", ""), ("x.unbind(a)[0]", ""), ("x.diagonal() if x.ndim > 1 else x[:]", ""), ("x[..., -1]", ""), ("x.movedim(a, -1)", ""),
]  # fmt: skip
