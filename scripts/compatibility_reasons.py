"""What there is in the place of a name of tinygrad or torch, or why there is nothing.

Keys are a name, or `place.name` where it means something else there, or `package:name`. Reasons that hold for
many names are rules.
"""

from __future__ import annotations

# Of names that end in an underscore, where there is the one without.
IN_PLACE = "in place: `x.assign(x.relu())`; `x += y` and its like"

# Another way to say it.
EQUIVALENTS: dict[str, str] = {
    # tinygrad
    "tinygrad.Tensor.alu": "the methods of `Tensor`; nodes are made by `UOp`",
    "tinygrad.Tensor.image_conv2d": "`Tensor.conv2d`",
    "tinygrad.Tensor.image_dot": "`Tensor.dot`",
    "tinygrad.Tensor.schedule_linear": "`polygrad.engine.profile`: what a computation launches",
    "tinygrad.Tensor.linear_with_vars": "`polygrad.engine.profile`: what a computation launches",
    "tinygrad.function": "`TinyJit`",
    "tinygrad.dtypes.int8s": "`dtypes.int8` and `dtypes.uint8`",
    "tinygrad.dtypes.int16s": "`dtypes.int16` and `dtypes.uint16`",
    "tinygrad.dtypes.int32s": "`dtypes.int32` and `dtypes.uint32`",
    "tinygrad.dtypes.int64s": "`dtypes.int64` and `dtypes.uint64`",
    "tinygrad.dtypes.fp8_ocp": "`dtypes.fp8e4m3` and `dtypes.fp8e5m2`",
    # torch: Tensors
    "tensor": "`Tensor(data)`", "as_tensor": "`Tensor(data)`", "asarray": "`Tensor(data)`",
    "from_numpy": "`Tensor(array)`", "frombuffer": "`Tensor(buffer)`", "scalar_tensor": "`Tensor(number)`",
    "from_file": "`Tensor(pathlib.Path(...))`", "new": "`Tensor(data)`", "new_tensor": "`Tensor(data)`",
    "new_empty": "`new_zeros`", "empty_permuted": "`Tensor.empty`", "randint_like": "`Tensor.randint(*x.shape)`",
    "range": "`Tensor.arange`", "logspace": "`base ** Tensor.linspace(...)`", "complex": "`Tensor.stack(re, im, dim=-1)`, as `fft` takes it",
    "byte": "`x.cast('uint8')`", "char": "`x.cast('int8')`", "type": "`x.cast(dtype)`, `x.dtype`",
    "cpu": "`x.to('CPU')`", "cuda": "`x.to(device)`", "get_device": "`x.device`", "itemsize": "`element_size()`",
    "ndimension": "`ndim`", "is_signed": "`not x.dtype.is_unsigned`", "is_same_size": "`x.shape == y.shape`",
    "is_nonzero": "`bool(x.item())`", "is_inference": "`Tensor.no_grad()`", "is_inference_mode_enabled": "`Tensor.no_grad()`",
    "is_tensor": "`isinstance(x, Tensor)`",
    "positive": "`x`", "equal": "`(x == y).all().item()`, for equal shapes", "sgn": "`sign`",
    "bitwise_left_shift": "`lshift`", "bitwise_right_shift": "`rshift`", "ldexp": "`x * 2 ** n`",
    "float_power": "`x.double().pow(y)`", "rsub": "`y - x`", "fill": "`x.full_like(value)`", "put": "`scatter` of `flatten()`",
    "addbmm": "`x + a.bmm(b).sum(0)`", "addr": "`x + a.outer(b)`", "chain_matmul": "`a @ b @ c`, or `Tensor.einsum`",
    "tensordot": "`Tensor.einsum`", "corrcoef": "`cov` divided by `std().outer(std())`",
    "cov": "`d = x - x.mean(1, keepdim=True)`; `d @ d.T / (n - 1)`",
    "diagflat": "`x.flatten().diag()`", "block_diag": "`pad` and `+`", "msort": "`x.sort(0)[0]`",
    "nanmedian": "`masked_select` and `median`", "nanquantile": "`masked_select` and `quantile`",
    "logdet": "`x.det().log()`", "slogdet": "`x.det()`: its `sign()` and `abs().log()`",
    "pinverse": "by `svd`", "matrix_rank": "`(x.svd()[1] > tolerance).sum()`", "nuclear_norm": "`x.svd()[1].sum()`",
    "frobenius_norm": "`x.norm()`", "lstsq": "by `qr` and `triangular_solve`",
    "cholesky_solve": "`triangular_solve`, twice", "cholesky_inverse": "`x.cholesky()` and `triangular_solve`",
    "svd_lowrank": "`svd`", "pca_lowrank": "`svd` of what is centred", "eig": "`eigh`, of symmetric matrices",
    "symeig": "`eigh`", "renorm": "`normalize`", "norm_except_dim": "`norm(axis=...)`",
    "index_put": "`x[indices] = values`", "index_copy": "`x[:, indices] = values`", "index": "`x[indices]`",
    "index_reduce": "`scatter_reduce`", "masked_scatter": "`x[mask] = values`, `where`",
    "select_scatter": "`x[...] = values` of a copy (`clone`)", "slice_scatter": "`x[...] = values` of a copy (`clone`)",
    "diagonal_scatter": "`where` with `Tensor.eye`", "nonzero_static": "`nonzero(size=...)`",
    "narrow_copy": "`narrow`", "split_with_sizes": "`split`", "tensor_split": "`split`", "hsplit": "`split(n, 1)`",
    "vsplit": "`split(n, 0)`", "dsplit": "`split(n, 2)`", "unsafe_chunk": "`chunk`", "unsafe_split": "`split`",
    "unsafe_split_with_sizes": "`split`", "sum_to_size": "`sum(axis, keepdim=True)`",
    "concat": "`Tensor.cat`", "concatenate": "`Tensor.cat`", "hstack": "`Tensor.cat(..., dim=1)`",
    "column_stack": "`Tensor.cat(..., dim=1)`", "vstack": "`Tensor.cat(..., dim=0)`", "row_stack": "`Tensor.cat(..., dim=0)`",
    "dstack": "`Tensor.cat(..., dim=2)`", "atleast_1d": "`reshape`", "atleast_2d": "`reshape`", "atleast_3d": "`reshape`",
    "broadcast_tensors": "`expand`; operators broadcast", "cartesian_prod": "`Tensor.meshgrid`",
    "tril_indices": "`Tensor.ones(n, m).tril().nonzero()`", "triu_indices": "`Tensor.ones(n, m).triu().nonzero()`",
    "bucketize": "`searchsorted`", "histogram": "`histc`", "unique_consecutive": "`unique`, or `x[1:] != x[:-1]`",
    "combinations": "`itertools.combinations` of positions, and indexing", "unravel_index": "`//` and `%`",
    "trapezoid": "`((y[1:] + y[:-1]) / 2 * x.diff()).sum()`", "trapz": "as `trapezoid`",
    "cumulative_trapezoid": "as `trapezoid`, with `cumsum`", "segment_reduce": "`scatter_reduce`",
    "conj": "`x * Tensor([1, -1])`, of pairs", "real": "`x[..., 0]`, of pairs", "imag": "`x[..., 1]`, of pairs",
    "angle": "`atan2`, of pairs", "polar": "`cos` and `sin`", "view_as_real": "pairs are real", "view_as_complex": "pairs stay real",
    "stft": "`unfold` and `rfft`", "istft": "`irfft` and `scatter_add`",
    "hann_window": "by `cos`", "hamming_window": "by `cos`", "blackman_window": "by `cos`", "bartlett_window": "by `abs`",
    "dequantize": "`(x.float() - zero) * scale`", "to_dense": "`x`: all Tensors are dense",
    "empty_strided": "`Tensor.empty`: strides are none of the API's",
    # torch: the package
    "load": "`nn.state.torch_load`", "save": "`nn.state.safe_save`", "compile": "`TinyJit`, `compile_step`",
    "seed": "`Tensor.manual_seed`", "initial_seed": "`Tensor.manual_seed`",
    "get_default_device": "`Device.DEFAULT`", "set_default_device": "`Device.DEFAULT = ...`",
    "get_default_dtype": "`dtypes.default_float`", "set_default_dtype": "`dtypes.default_float = ...`",
    "set_default_tensor_type": "`Device.DEFAULT`, `dtypes.default_float`",
    "promote_types": "`dtypes.least_upper_dtype`", "result_type": "`(x + y).dtype`, which is not computed",
    "can_cast": "`dtypes.least_upper_dtype(a, b) == b`", "typename": "`type(x).__name__`", "broadcast_shapes": "`(x + y).shape`",
    "cond": "`where`; Python's `if` outside of captures", "while_loop": "Python's `while` outside of captures",
    "use_deterministic_algorithms": "results are always the same by the bit",
    # torch: functions of networks
    "embedding": "`nn.Embedding`, or `weight[indices]`", "embedding_bag": "`weight[indices].mean(1)`",
    "conv1d": "`Tensor.conv2d`: any number of axes", "conv3d": "`Tensor.conv2d`: any number of axes",
    "convolution": "`Tensor.conv2d`", "conv_tbc": "`permute` and `Tensor.conv2d`",
    "conv_transpose1d": "`Tensor.conv_transpose2d`: any number of axes",
    "conv_transpose3d": "`Tensor.conv_transpose2d`: any number of axes",
    "avg_pool1d": "`Tensor.avg_pool2d(kernel_size=(k,))`", "avg_pool3d": "`Tensor.avg_pool2d(kernel_size=(k, k, k))`",
    "max_pool1d": "`Tensor.max_pool2d(kernel_size=(k,))`", "max_pool3d": "`Tensor.max_pool2d(kernel_size=(k, k, k))`",
    "max_unpool1d": "`Tensor.max_unpool2d`", "max_unpool3d": "`Tensor.max_unpool2d`",
    "lp_pool1d": "`avg_pool2d` of powers", "lp_pool2d": "`avg_pool2d` of powers", "lp_pool3d": "`avg_pool2d` of powers",


    "batch_norm": "`nn.BatchNorm`, `Tensor.batchnorm`", "layer_norm": "`nn.LayerNorm`, `Tensor.layernorm`",
    "group_norm": "`nn.GroupNorm`", "instance_norm": "`nn.InstanceNorm`", "rms_norm": "`nn.RMSNorm`",
    "local_response_norm": "`x / (k + x.square().avg_pool2d(...)) ** b`", "constant_pad_nd": "`pad`",
    "bilinear": "`nn.Bilinear`", "multi_head_attention_forward": "`nn.MultiheadAttention`", "channel_shuffle": "`rearrange`",
    "upsample": "`interpolate`", "upsample_bilinear": "`interpolate`", "upsample_nearest": "`interpolate`",
    "dropout1d": "`x * mask`, `mask` of ones with its own `dropout`", "dropout2d": "as `dropout1d`", "dropout3d": "as `dropout1d`",
    "feature_dropout": "as `dropout1d`", "rrelu": "`leaky_relu`", "gumbel_softmax": "`(x - (-Tensor.rand(*x.shape).log()).log()).softmax()`",
    "pdist": "`x.cdist(x)`",




    "triplet_margin_with_distance_loss": "as `triplet_margin_loss`",
    "linear_cross_entropy": "`linear` and `cross_entropy`", "scaled_mm": "`matmul` and `*`",
    "lstm": "`nn.LSTM`", "lstm_cell": "`nn.LSTMCell`", "gru": "`nn.GRU`", "gru_cell": "`nn.GRU` of one step",
 "poisson": "by `rand` and `searchsorted`", "binomial": "`bernoulli` summed up",
    # torch.nn
    "Module": "any object that has Tensors, or such objects, in it", "ModuleList": "a list", "ModuleDict": "a dict",
    "ParameterList": "a list of Tensors", "ParameterDict": "a dict of Tensors", "Sequential": "a list, and `Tensor.sequential`",
    "Identity": "`lambda x: x`",
    "Flatten": "`Tensor.flatten`", "Unflatten": "`Tensor.unflatten`", "Container": "a list",
    "BatchNorm1d": "`nn.BatchNorm`: any number of axes", "SyncBatchNorm": "`nn.BatchNorm`",
    "InstanceNorm1d": "`nn.InstanceNorm`", "InstanceNorm2d": "`nn.InstanceNorm`", "InstanceNorm3d": "`nn.InstanceNorm`",
    "LocalResponseNorm": "see `local_response_norm`", "CrossMapLRN2d": "see `local_response_norm`",
    "RNN": "`nn.GRU` or `nn.LSTM`", "RNNCell": "`nn.LSTMCell`", "GRUCell": "`nn.GRU` of one step",
    "DataParallel": "`Tensor.shard_` of parameters, `Tensor.shard` of batches", "TransformerEncoderLayer": "`nn.TransformerBlock`", "TransformerEncoder": "a list of `nn.TransformerBlock`",
    "EmbeddingBag": "`nn.Embedding` and `mean`", "Fold": "`scatter_add`", "fold": "`scatter_add`", "Unfold": "`Tensor.unfold`, `Tensor.pool`",
    "Upsample": "`Tensor.interpolate`", "UpsamplingBilinear2d": "`Tensor.interpolate`", "UpsamplingNearest2d": "`Tensor.interpolate`",
    "PixelShuffle": "`Tensor.pixel_shuffle`", "PixelUnshuffle": "`Tensor.pixel_unshuffle`", "ChannelShuffle": "`Tensor.rearrange`",
    "CosineSimilarity": "`Tensor.cosine_similarity`", "PairwiseDistance": "`(x - y).norm(p, -1)`",
    "CrossEntropyLoss": "`Tensor.cross_entropy`", "NLLLoss": "`Tensor.nll_loss`", "NLLLoss2d": "`Tensor.nll_loss`",
    "MSELoss": "`Tensor.mse_loss`", "L1Loss": "`Tensor.l1_loss`", "SmoothL1Loss": "`Tensor.smooth_l1_loss`",
    "HuberLoss": "`Tensor.huber_loss`", "KLDivLoss": "`Tensor.kl_div`", "BCELoss": "`Tensor.binary_crossentropy`",
    "BCEWithLogitsLoss": "`Tensor.binary_crossentropy_logits`", "GaussianNLLLoss": "`Tensor.gaussian_nll_loss`",
    "LinearCrossEntropyLoss": "`linear` and `cross_entropy`",
    "ReLU": "`Tensor.relu`", "ReLU6": "`Tensor.relu6`", "RReLU": "`Tensor.leaky_relu`", "LeakyReLU": "`Tensor.leaky_relu`",
    "SiLU": "`Tensor.silu`", "Softmax2d": "`Tensor.softmax(1)`", "PReLU": "`Tensor.prelu`", "LogSigmoid": "`Tensor.logsigmoid`",
    "LogSoftmax": "`Tensor.log_softmax`", "GELU": "`Tensor.gelu`", "GLU": "`Tensor.glu`", "CELU": "`Tensor.celu`",
    "ELU": "`Tensor.elu`", "SELU": "`Tensor.selu`",
    # torch.optim
    "SparseAdam": "`nn.optim.Adam`: gradients are dense",
    "zero_": "`x.assign(x.zeros_like())`", "fill_": "`x.assign(x.full_like(value))`", "copy_": "`x.assign(y)`", "set_": "`x.replace(y)`",
    "detach_": "`x.detach()`", "resize_": "`reshape`, `shrink`, `pad`", "resize_as_": "`reshape`, `shrink`, `pad`",
    "resize": "`reshape`, `shrink`, `pad`", "resize_as": "`reshape`, `shrink`, `pad`", "t_": "`x.t()`: views cost nothing",
    "random_": "`x.assign(Tensor.randint(*x.shape))`", "normal_": "`nn.init.normal_`", "uniform_": "`nn.init.uniform_`",
    "fill_diagonal_": "`where` with `Tensor.eye`", "exponential_": "`-(1 - Tensor.rand(*shape)).log() / rate`",
    "log_normal_": "`Tensor.normal(*shape).exp()`", "cauchy_": "`((Tensor.rand(*shape) - 0.5) * pi).tan()`",
    "geometric_": "by `rand` and `log`", "bernoulli_": "`x.assign(p.bernoulli())`", "apply_": "the methods of `Tensor`", "map_": "the methods of `Tensor`",
    "map2_": "the methods of `Tensor`",
    "grad_fn": "`x.uop`", "storage": "`x.data()`", "untyped_storage": "`x.data()`", "data_ptr": "`x.data()`", "values": "`x`",
    "is_contiguous": "`x.contiguous()`: no copy where it is",
    "dim_order": "axes are in order", "stride": "views have none: see `movement`", "storage_offset": "views have none: see `movement`",
    "as_strided": "`unfold`, `pool`, `shrink`", "as_strided_scatter": "writes to views", "pin_memory": "memory needs no pinning",
    "share_memory_": "`Tensor.from_blob`", "record_stream": "devices run in order",
    "adjoint": "`mT`", "H": "`T`", "mH": "`mT`", "isreal": "all are",
}  # fmt: skip

_COMPLEX = "no complex dtypes: Fourier transforms are of pairs of reals"
_SPARSE = "no sparse layouts: a gather and `scatter_add` do it"
_QUANTIZED = "no quantized dtypes: weights of GGUF files are read as floats, int8 products are `matmul`"
_INTERNAL = "internal to torch"
_RARE = "rarely used; not written yet"
_GRAPH = "gradients are lazy values: there is no tape to hook into"

# Not there, and why.
REASONS: dict[str, str] = {
    "tinygrad.Tensor.call": "graphs with calls of functions are none of ours: `TinyJit` captures them",
    "tinygrad.Tensor.callify": "graphs with calls of functions are none of ours: `TinyJit` captures them",
    "tinygrad.Tensor.decode_hevc_frame": "needs the video decoder of one vendor's GPUs",
    "tinygrad.Tensor.invalids": "an internal constant of tinygrad's padding",
    "tinygrad.dtypes.fp8_fnuz": "formats of one vendor's GPUs, without infinities",
    "tinygrad.dtypes.fp8e4m3fnuz": "formats of one vendor's GPUs, without infinities",
    "tinygrad.dtypes.fp8e5m2fnuz": "formats of one vendor's GPUs, without infinities",
    "tinygrad.dtypes.weakint": "Python numbers are weak by themselves: they are no dtypes",
    "tinygrad.dtypes.weakfloat": "Python numbers are weak by themselves: they are no dtypes",
    "tinygrad.dtypes.weaks": "Python numbers are weak by themselves: they are no dtypes",
    "Adafactor": "superseded by AdamW, LAMB and Muon; not written yet",
    **dict.fromkeys(["matrix_exp", "lobpcg", "histogramdd", "kaiser_window", "hash_tensor"], _RARE),
    **dict.fromkeys(["lu", "lu_solve", "lu_unpack", "geqrf", "orgqr", "ormqr"],
                    "LAPACK's factors; `solve`, `inv`, `det` and `qr` are there"),
    **dict.fromkeys(["AdaptiveLogSoftmaxWithLoss", "grouped_mm", "scaled_grouped_mm", "LinearCrossEntropyOptions"], _RARE),
    **dict.fromkeys(["Transformer", "TransformerDecoder", "TransformerDecoderLayer"],
                    "of translation models; `nn.MultiheadAttention` has what they are made of"),
    **dict.fromkeys(["register_post_accumulate_grad_hook", "retains_grad", "output_nr", "grad_dtype", "volatile",
                     "reinforce"], _GRAPH),
    **dict.fromkeys(["name", "module_load", "as_subclass", "layout", "is_set_to", "resolve_neg", "is_neg", "to_padded_tensor",
                     "is_nested", "is_shared", "is_pinned", "is_distributed", "const_data_ptr", "storage_type",
                     "to_mkldnn", "slice_inverse", "get_device_module", "new_empty_strided", "set_flush_denormal",
                     "set_printoptions", "get_file_path", "wait", "fork", "is_storage", "choose_qparams_optimized", "embedding_renorm_"], _INTERNAL),
    **dict.fromkeys(["to_dlpack", "from_dlpack"], "`numpy()` and `Tensor(array)` exchange arrays; no DLPack"),
    **dict.fromkeys(["get_num_interop_threads", "set_num_interop_threads"], "one Program runs at a time"),
    **dict.fromkeys(["get_rng_state", "set_rng_state", "thread_safe_generator"],
                    "random numbers are a counter's: `Tensor.manual_seed` sets all there is"),
    **dict.fromkeys(["dirac", "eye", "orthogonal", "sparse", "constant", "normal", "uniform", "kaiming_normal",
                     "kaiming_uniform", "xavier_normal", "xavier_uniform"], "deprecated in torch"),
    "tinygrad.nn.state.accept_filename": "a decorator of its own functions",
}  # fmt: skip

# (place, names, status, text), regular expressions that match all of both; the first that does holds.
RULES: tuple[tuple[str, str, str, str], ...] = (
    ("torch.*", r".*(sparse|coo|csr|csc|bsr|bsc).*|coalesce|ccol_.*|crow_.*|(col|row)_indices.*|indices|dense_dim|"
                r"spmm|smm|hspmm|hsmm|dsmm|s?addmm|saddmm|sspaddmm|indices_copy|values_copy|is_coalesced", "no", _SPARSE),
    ("torch.*", r".*quant.*|q_.*|qscheme|int_repr|fbgemm.*", "no", _QUANTIZED),
    ("torch.*", r"cdouble|cfloat|chalf|(is_)?(complex|conj)|conj_physical|resolve_conj|view_as_complex.*", "no", _COMPLEX),
    ("torch.*", r"is_(cpu|cuda|ipu|maia|meta|mkldnn|mps|mtia|vulkan|xla|xpu).*|ipu|mtia|xpu", "other",
     "`x.device`, `x.to(device)`"),
    ("torch", r".*_anomaly_.*", "other", "`with Tensor.detect_anomaly():`, or `ANOMALY=1`"),
    ("torch", r".*_copy|cudnn.*|miopen.*|mkldnn.*|native_.*|batch_norm_.*|sym_.*|parse_.*|import_ir.*|.*_backward.*|"
              r"merge_type.*|unify_type.*|classproperty|compiled_with.*|init_num_threads|prepare_.*|profiler.*|"
              r"rnn_.*|.*_cell|max_pool1d_with_indices|is_vulkan.*|.*warn.*", "no", _INTERNAL),
    ("torch", r".*autocast.*", "no", "dtypes are said where a Tensor is made or cast; nothing changes them behind your back"),
    ("torch", r".*deterministic.*|.*float32_matmul.*", "no", "results are always the same by the bit, in full precision"),
    (r"torch.*functional", r".*torch_function.*|assert_int_or_pair|boolean_dispatch|native_.*", "no", _INTERNAL),
    (r"torch.*", r"(adaptive_)?max_pool\dd_with_indices", "other", "`max_pool2d(return_indices=True)`"),
    (r"torch.*", r"fractional_max_pool.*", "no", "windows at random: rarely used; not written yet"),
    (r"torch.nn", r"FractionalMaxPool.*", "no", "windows at random: rarely used; not written yet"),
    (r"torch.nn", r"Adaptive(Avg|Max)Pool.*", "other", "`Tensor.adaptive_avg_pool2d`, `Tensor.adaptive_max_pool2d` and their like"),
    (r"torch.*", r"igammac?", "no", "series whose lengths depend on the elements; not written yet"),
    (r"torch", r"grid_sampler.*", "other", "`Tensor.grid_sample`"),
    (r"torch", r"affine_grid_generator", "other", "`Tensor.affine_grid`"),
    (r"torch.nn", r"(Avg|Max|LP)(Unp|P)ool\dd", "other", "`Tensor.avg_pool2d`, `Tensor.max_pool2d`, `Tensor.max_unpool2d`"),
    (r"torch.nn", r"(Circular|Constant|Reflection|Replication|Zero)Pad\dd", "other", "`Tensor.pad`"),
    (r"torch.nn", r"Lazy.*|Uninitialized.*", "no", "sizes are given when a layer is made"),
    (r"torch.nn", r"Dropout\d?d?", "other", "`Tensor.dropout`"),
    (r"torch.nn", r"(Feature)?AlphaDropout", "other", "`Tensor.alpha_dropout`, `Tensor.feature_alpha_dropout`"),
    (r"torch.nn", r".*Loss", "other", "as the function of this name, above"),
    (r"torch.nn", r"RNN(Cell)?Base", "no", _INTERNAL),
    (r"torch.nn", r"(Hard|Soft|Tanh|Log)?(shrink|sigmoid|swish|tanh|max|min|plus|sign)|Tanhshrink|Sigmoid|Tanh|Mish|Threshold|"
                  r"Soft\w+|Hard\w+", "other", "a method of `Tensor` of that name"),
)  # fmt: skip
