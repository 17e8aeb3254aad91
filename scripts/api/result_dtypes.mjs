/** The dtypes of results, in the types of TypeScript: `D` is the dtype of the tensor that a method is called on. */

const names = (text) => new Set(text.split(" ").map((name) => `Tensor.${name}`));

/** Movements, and functions that give elements of the same dtype. */
const SAME = names(
  "abs absolute amax amin as_param broadcast_to clone contiguous detach diagonal dropout expand expand_as flatten flip fliplr " +
    "flipud gather index_select max min moveaxis movedim narrow neg negative pad permute ravel repeat " +
    "repeat_interleave reshape reshape_as roll rot90 select shrink shrink_to squeeze swapaxes swapdims t take tile to " +
    "transpose tril triu unflatten unfold unsqueeze view view_as T",
);

const OF_TRUTH = names(
  "all allclose any eq ge greater greater_equal gt isclose isfinite isin isinf isnan isneginf isposinf le less " +
    "less_equal logical_and logical_not logical_or logical_xor lt ne not_equal signbit",
);

const OF_INDICES = names("argmax argmin argsort");

/** Functions of floats. Of integers they give floats, too. */
const OF_FLOATS = names(
  "acos asin atan binary_crossentropy binary_crossentropy_logits cos cosh cross_entropy elu erf exp exp2 expm1 " +
    "gelu kl_div l1_loss layernorm leaky_relu log log10 log1p log2 logsumexp mean mish mse_loss nll_loss norm reciprocal " +
    "rsqrt sigmoid silu sin sinh softplus sqrt std swish tan tanh var",
);

/** Operations on two operands, whose dtypes decide. */
const OF_OPERANDS = names("add div divide maximum minimum mod mul multiply pow sub subtract true_divide");

/** The dtype that is in a method's name. */
const CASTS = {
  float: "float32",
  half: "float16",
  double: "float64",
  int: "int32",
  long: "int64",
  bool: "bool",
};

/** What is of a dtype unless the option `dtype` names another. */
const UNLESS_NAMED = {
  ...Object.fromEntries(["sum", "prod"].map((name) => [`Tensor.${name}`, "ReducedDType[D]"])),
  ...Object.fromEntries(["softmax", "log_softmax"].map((name) => [`Tensor.${name}`, "FloatOf[D]"])),
  ...Object.fromEntries(
    ["zeros", "ones", "empty", "rand", "randn", "normal", "uniform", "glorot_uniform", "kaiming_uniform"].map(
      (name) => [`Tensor.${name}`, '"float32"'],
    ),
  ),
};

/** The dtype of the result of `id`, as a type; undefined where it is not known. */
export function resultDType(id) {
  if (SAME.has(id)) return "D";
  if (OF_TRUTH.has(id)) return '"bool"';
  if (OF_INDICES.has(id)) return '"int32"';
  if (OF_FLOATS.has(id)) return "FloatOf[D]";
  if (OF_OPERANDS.has(id)) return "Operated<D, X>";
  if (id === "Tensor.relu") return "WithNumber[D]";
  const cast = CASTS[id.slice("Tensor.".length)];
  return cast && JSON.stringify(cast);
}

/** The dtype of the result where the option `dtype` is not given. */
export function resultDTypeUnlessNamed(id) {
  return UNLESS_NAMED[id];
}

/** Whether the type of the operand `x` is a parameter of the method. */
export function takesOperand(id) {
  return OF_OPERANDS.has(id);
}
