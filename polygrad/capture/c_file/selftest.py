"""The text of a model's test: it runs each entry on kept inputs and compares the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from polygrad.capture.c_file.arrays import array_address, array_text
from polygrad.capture.c_file.header import selftest_head
from polygrad.capture.c_file.model import ALIGNMENT, CModel, Entry
from polygrad.capture.c_file.reference import DIGEST_START, Build, Expected, kept_elements
from polygrad.dtype import DType, dtypes
from polygrad.helpers import round_up

# How memory is read: the bytes of an element, and of a float the bits of infinity.
_KINDS: dict[DType, tuple[str, str]] = {
    dtypes.float16: ("2", "0x7c00"),
    dtypes.bfloat16: ("2", "0x7f80"),
    dtypes.float32: ("4", "0x7f800000"),
    dtypes.float64: ("8", "0x7ff0000000000000ull"),
}
_COMPARE = """\
static uint64_t bits_at(const void *data, size_t i, int bytes) {{
  switch (bytes) {{
  case 1: return ((const mem_u8 *)data)[i];
  case 2: return ((const mem_u16 *)data)[i];
  case 4: return ((const mem_u32 *)data)[i];
  default: return ((const mem_u64 *)data)[i];
  }}
}}

/* `infinity`: the bits of infinity, 0 for integers. Zeros are one number, and so are NaN. */
static uint64_t digest_of(const void *data, size_t count, int bytes, uint64_t infinity) {{
  uint64_t digest = 0, weight = {start:#x}ull;
  for (size_t i = 0; i < count; i++, weight += 2) {{
    uint64_t bits = bits_at(data, i, bytes);
    if (infinity) {{
      uint64_t sign = (uint64_t)1 << (8 * bytes - 1);
      if ((bits & (sign - 1)) > infinity)
        bits = infinity + 1;
      else if (bits == sign)
        bits = 0;
    }}
    digest += bits * weight;
  }}
  return digest;
}}

static double float_at(const void *data, size_t i, int bytes, uint64_t infinity) {{
  union {{ uint32_t bits; float value; }} single;
  if (bytes == 8)
    return ((const mem_f64 *)data)[i];
  single.bits = (uint32_t)bits_at(data, i, bytes);
  if (infinity == 0x7f80)
    single.bits <<= 16;
  if (infinity == 0x7c00) {{ /* float16: its exponent becomes that of a float by the product */
    uint32_t sign = (single.bits & 0x8000) << 16;
    single.bits = (single.bits & 0x7fff) << 13;
    single.value *= 5.192296858534828e33f;
    single.bits |= sign;
  }}
  return single.value;
}}

/* Elements of a result: all of a tensor are within `bound` of them where other bits are right, too. */
struct sample {{
  size_t position;
  double value;
}};

static int compare(const void *data, size_t count, int bytes, uint64_t infinity, const uint64_t *digests,
                   const struct sample *samples, size_t sample_count, double bound) {{
  if (BUILD >= 0 && digest_of(data, count, bytes, infinity) == digests[BUILD])
    return {macro}_OK;
  for (size_t i = 0; i < sample_count; i++) {{
    double difference = float_at(data, samples[i].position, bytes, infinity) - samples[i].value;
    if (!(difference <= bound && -difference <= bound))
      return {macro}_WRONG_RESULT;
  }}
  if (!infinity) {{ /* integers round nothing */
    for (int i = 0; i < {builds}; i++)
      if (digest_of(data, count, bytes, infinity) == digests[i])
        return {macro}_OK;
    return {macro}_WRONG_RESULT;
  }}
  return BUILD < 0 ? {macro}_OK : {macro}_OTHER_BITS;
}}
"""


def test_size(model: CModel, size: int) -> int:
    """The bytes of memory of the test of a model that needs `size`."""
    return max(_layout(model, entry, size)[1] for entry in model.entries)


def _layout(model: CModel, entry: Entry, size: int) -> tuple[dict[str, int], int]:
    """Where each input and output is in the test's memory, by its expression, and the end."""
    places, end = {}, round_up(size, ALIGNMENT)
    for role in ("input", "output"):
        for m in entry.members(role):
            places[f"{role}s.{m.name}"] = end
            end = round_up(end + m.nbytes, ALIGNMENT)
    return places, end


def selftest_text(
    model: CModel, builds: Sequence[Build], expected: Mapping[str, Sequence[Expected]], size: int
) -> str:
    """The test. `expected`: the results of each entry, by its label."""
    parts = [
        _build_number(builds),
        _COMPARE.format(start=DIGEST_START, macro=model.macro, builds=len(builds)),
    ]
    for entry in model.entries:
        parts += [_kept(entry, expected[entry.label]), _entry_test(model, entry, expected[entry.label], size)]
    macro, name = model.macro, model.name
    weights = ", weights, weights_size" if model.weights else ""
    lines = [
        f"if (size < {macro}_SELFTEST_SIZE)\n    return {macro}_TOO_SMALL;",
        f"{name} model;",
        f"int worst = {macro}_OK;",
    ]
    for entry in model.entries:
        lines.append(
            f"{{\n    int status = {name}_init(&model, memory, size{weights});\n"
            f"    if (status == {macro}_OK)\n"
            f"      status = test_{entry.function}(&model, (unsigned char *)memory);\n"
            "    worst = status > worst ? status : worst;\n  }"
        )
    lines.append("return worst;")
    parts.append(f"{selftest_head(model)} {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n")
    return "\n".join(parts)


def _build_number(builds: Sequence[Build]) -> str:
    """The macro BUILD: the number of this file's digests, or -1."""
    lines = ["/* Whose digests are those of this build. */"]
    for i, build in enumerate(builds):
        fused = f" && {'' if build.fused else '!'}FUSED" if build.variant.width else ""
        lines.append(f"#{'elif' if i else 'if'} VECTOR == {build.variant.width}{fused}\n#define BUILD {i}")
    return "\n".join([*lines, "#else\n#define BUILD -1\n#endif\n"])


def _kept(entry: Entry, expected: Sequence[Expected]) -> str:
    """The constants of an entry's test."""
    out = ""
    for m in entry.inputs:
        data = kept_elements(entry.example.inputs[m.label], m.dtype)
        out += array_text(f"input_{entry.function}_{m.name}", m.dtype, data, data.nbytes // m.dtype.itemsize)
    for i, e in enumerate(expected):
        digests = ", ".join(f"{d:#x}ull" for d in e.digests)
        out += f"static const uint64_t digests_{entry.function}_{i}[] = {{{digests}}};\n"
        if e.samples:
            samples = ", ".join(f"{{{n}, {x!r}}}" for n, x in e.samples.items())
            out += f"static const struct sample samples_{entry.function}_{i}[] = {{{samples}}};\n"
    return out


def _entry_test(model: CModel, entry: Entry, expected: Sequence[Expected], size: int) -> str:
    macro, places = model.macro, _layout(model, entry, size)[0]
    lines = [f"{entry.structs}_{role}s {role}s;" for role in ("input", "output") if entry.members(role)]
    lines.append(f"int status, worst = {macro}_OK;")
    for m in entry.inputs:
        kept = f"input_{entry.function}_{m.name}"
        count = max(kept_elements(entry.example.inputs[m.label], m.dtype).nbytes // m.dtype.itemsize, 1)
        lines.append(
            f"{{\n    {m.type} *elements = ({m.type} *)(void *)(memory + {places[f'inputs.{m.name}']});\n"
            f"    for (size_t i = 0; i < {m.size}; i++)\n"
            f"      elements[i] = {array_address(kept, m.dtype)}[i % {count}];\n"
            f"    inputs.{m.name} = elements;\n  }}"
        )
    for m in entry.outputs:
        place = places[f"outputs.{m.name}"]
        lines.append(f"outputs.{m.name} = ({m.type} *)(void *)(memory + {place});")
    arguments = ["model", *(f"&{role}s" for role in ("input", "output") if entry.members(role))]
    arguments += [str(entry.example.variables[v.label]) for v in entry.variables]
    lines += [
        f"status = {entry.function}({', '.join(arguments)});",
        f"if (status != {macro}_OK)\n    return status;",
    ]
    for i, e in enumerate(expected):
        bytes_, infinity = _KINDS.get(e.member.dtype, (str(e.member.dtype.itemsize), "0"))
        samples = f"samples_{entry.function}_{i}" if e.samples else "0"
        lines.append(
            f"status = compare({e.address}, {e.count}, {bytes_}, {infinity}, digests_{entry.function}_{i}, "
            f"{samples}, {len(e.samples)}, {e.bound!r});\n  worst = status > worst ? status : worst;"
        )
    lines.append("return worst;")
    if not places:
        lines.insert(0, "(void)memory;")
    return (
        f"static int test_{entry.function}(const {model.name} *model, unsigned char *memory) {{\n"
        + "".join(f"  {line}\n" for line in lines)
        + "}\n"
    )
