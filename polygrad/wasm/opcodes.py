"""The table of WebAssembly instructions; encoder, printer, reader and checks all derive from it.

A row is: opcode bytes in hex, name as the specification spells it, kind of immediate, signature. The
signature is operands `>` results with i = i32, l = i64, f = f32, d = f64, v = v128; `*` where it depends on
the context. Kinds of immediate: `-` none; `mem.A` a memarg with natural alignment 2**A bytes; `memlane.A` a
memarg and a lane; `lane.N` a lane below N; `shuffle` sixteen lanes below 32; the others are named after their
contents.

Core specification 2.0 (MVP, sign extension, saturating conversions, bulk memory, SIMD), relaxed SIMD and
threads.
"""

from __future__ import annotations

from typing import NamedTuple

from polygrad.errors import InternalError
from polygrad.wasm.types import F32, F64, I32, I64, V128


class Opcode(NamedTuple):
    """A row of the table. `params` and `results` are value types, None where they depend on the context;
    `bound` is the natural alignment's exponent of a memarg, or the number of lanes."""

    name: str
    code: bytes
    immediate: str
    bound: int
    params: tuple[int, ...] | None
    results: tuple[int, ...] | None


TABLE = """
# control
00 unreachable - *
01 nop - >
02 block block *
03 loop block *
04 if block *
05 else - *
0b end - *
0c br label *
0d br_if label *
0e br_table labels *
0f return - *
10 call func *
11 call_indirect type_table *
# parametric and variables
1a drop - *
1b select - *
20 local.get local *
21 local.set local *
22 local.tee local *
23 global.get global *
24 global.set global *
# memory
28 i32.load mem.2 i>i
29 i64.load mem.3 i>l
2a f32.load mem.2 i>f
2b f64.load mem.3 i>d
2c i32.load8_s mem.0 i>i
2d i32.load8_u mem.0 i>i
2e i32.load16_s mem.1 i>i
2f i32.load16_u mem.1 i>i
30 i64.load8_s mem.0 i>l
31 i64.load8_u mem.0 i>l
32 i64.load16_s mem.1 i>l
33 i64.load16_u mem.1 i>l
34 i64.load32_s mem.2 i>l
35 i64.load32_u mem.2 i>l
36 i32.store mem.2 ii>
37 i64.store mem.3 il>
38 f32.store mem.2 if>
39 f64.store mem.3 id>
3a i32.store8 mem.0 ii>
3b i32.store16 mem.1 ii>
3c i64.store8 mem.0 il>
3d i64.store16 mem.1 il>
3e i64.store32 mem.2 il>
3f memory.size memory >i
40 memory.grow memory i>i
# constants
41 i32.const i32 >i
42 i64.const i64 >l
43 f32.const f32 >f
44 f64.const f64 >d
# comparisons
45 i32.eqz - i>i
46 i32.eq - ii>i
47 i32.ne - ii>i
48 i32.lt_s - ii>i
49 i32.lt_u - ii>i
4a i32.gt_s - ii>i
4b i32.gt_u - ii>i
4c i32.le_s - ii>i
4d i32.le_u - ii>i
4e i32.ge_s - ii>i
4f i32.ge_u - ii>i
50 i64.eqz - l>i
51 i64.eq - ll>i
52 i64.ne - ll>i
53 i64.lt_s - ll>i
54 i64.lt_u - ll>i
55 i64.gt_s - ll>i
56 i64.gt_u - ll>i
57 i64.le_s - ll>i
58 i64.le_u - ll>i
59 i64.ge_s - ll>i
5a i64.ge_u - ll>i
5b f32.eq - ff>i
5c f32.ne - ff>i
5d f32.lt - ff>i
5e f32.gt - ff>i
5f f32.le - ff>i
60 f32.ge - ff>i
61 f64.eq - dd>i
62 f64.ne - dd>i
63 f64.lt - dd>i
64 f64.gt - dd>i
65 f64.le - dd>i
66 f64.ge - dd>i
# integer and float arithmetic
67 i32.clz - i>i
68 i32.ctz - i>i
69 i32.popcnt - i>i
6a i32.add - ii>i
6b i32.sub - ii>i
6c i32.mul - ii>i
6d i32.div_s - ii>i
6e i32.div_u - ii>i
6f i32.rem_s - ii>i
70 i32.rem_u - ii>i
71 i32.and - ii>i
72 i32.or - ii>i
73 i32.xor - ii>i
74 i32.shl - ii>i
75 i32.shr_s - ii>i
76 i32.shr_u - ii>i
77 i32.rotl - ii>i
78 i32.rotr - ii>i
79 i64.clz - l>l
7a i64.ctz - l>l
7b i64.popcnt - l>l
7c i64.add - ll>l
7d i64.sub - ll>l
7e i64.mul - ll>l
7f i64.div_s - ll>l
80 i64.div_u - ll>l
81 i64.rem_s - ll>l
82 i64.rem_u - ll>l
83 i64.and - ll>l
84 i64.or - ll>l
85 i64.xor - ll>l
86 i64.shl - ll>l
87 i64.shr_s - ll>l
88 i64.shr_u - ll>l
89 i64.rotl - ll>l
8a i64.rotr - ll>l
8b f32.abs - f>f
8c f32.neg - f>f
8d f32.ceil - f>f
8e f32.floor - f>f
8f f32.trunc - f>f
90 f32.nearest - f>f
91 f32.sqrt - f>f
92 f32.add - ff>f
93 f32.sub - ff>f
94 f32.mul - ff>f
95 f32.div - ff>f
96 f32.min - ff>f
97 f32.max - ff>f
98 f32.copysign - ff>f
99 f64.abs - d>d
9a f64.neg - d>d
9b f64.ceil - d>d
9c f64.floor - d>d
9d f64.trunc - d>d
9e f64.nearest - d>d
9f f64.sqrt - d>d
a0 f64.add - dd>d
a1 f64.sub - dd>d
a2 f64.mul - dd>d
a3 f64.div - dd>d
a4 f64.min - dd>d
a5 f64.max - dd>d
a6 f64.copysign - dd>d
# conversions
a7 i32.wrap_i64 - l>i
a8 i32.trunc_f32_s - f>i
a9 i32.trunc_f32_u - f>i
aa i32.trunc_f64_s - d>i
ab i32.trunc_f64_u - d>i
ac i64.extend_i32_s - i>l
ad i64.extend_i32_u - i>l
ae i64.trunc_f32_s - f>l
af i64.trunc_f32_u - f>l
b0 i64.trunc_f64_s - d>l
b1 i64.trunc_f64_u - d>l
b2 f32.convert_i32_s - i>f
b3 f32.convert_i32_u - i>f
b4 f32.convert_i64_s - l>f
b5 f32.convert_i64_u - l>f
b6 f32.demote_f64 - d>f
b7 f64.convert_i32_s - i>d
b8 f64.convert_i32_u - i>d
b9 f64.convert_i64_s - l>d
ba f64.convert_i64_u - l>d
bb f64.promote_f32 - f>d
bc i32.reinterpret_f32 - f>i
bd i64.reinterpret_f64 - d>l
be f32.reinterpret_i32 - i>f
bf f64.reinterpret_i64 - l>d
# sign extension
c0 i32.extend8_s - i>i
c1 i32.extend16_s - i>i
c2 i64.extend8_s - l>l
c3 i64.extend16_s - l>l
c4 i64.extend32_s - l>l
# saturating float to integer
fc00 i32.trunc_sat_f32_s - f>i
fc01 i32.trunc_sat_f32_u - f>i
fc02 i32.trunc_sat_f64_s - d>i
fc03 i32.trunc_sat_f64_u - d>i
fc04 i64.trunc_sat_f32_s - f>l
fc05 i64.trunc_sat_f32_u - f>l
fc06 i64.trunc_sat_f64_s - d>l
fc07 i64.trunc_sat_f64_u - d>l
# bulk memory
fc08 memory.init data_memory iii>
fc09 data.drop data >
fc0a memory.copy memory_memory iii>
fc0b memory.fill memory iii>
fc0c table.init elem_table iii>
fc0d elem.drop elem >
fc0e table.copy table_table iii>
# SIMD: memory
fd00 v128.load mem.4 i>v
fd01 v128.load8x8_s mem.3 i>v
fd02 v128.load8x8_u mem.3 i>v
fd03 v128.load16x4_s mem.3 i>v
fd04 v128.load16x4_u mem.3 i>v
fd05 v128.load32x2_s mem.3 i>v
fd06 v128.load32x2_u mem.3 i>v
fd07 v128.load8_splat mem.0 i>v
fd08 v128.load16_splat mem.1 i>v
fd09 v128.load32_splat mem.2 i>v
fd0a v128.load64_splat mem.3 i>v
fd0b v128.store mem.4 iv>
fd54 v128.load8_lane memlane.0 iv>v
fd55 v128.load16_lane memlane.1 iv>v
fd56 v128.load32_lane memlane.2 iv>v
fd57 v128.load64_lane memlane.3 iv>v
fd58 v128.store8_lane memlane.0 iv>
fd59 v128.store16_lane memlane.1 iv>
fd5a v128.store32_lane memlane.2 iv>
fd5b v128.store64_lane memlane.3 iv>
fd5c v128.load32_zero mem.2 i>v
fd5d v128.load64_zero mem.3 i>v
# SIMD: constants and lanes
fd0c v128.const v128 >v
fd0d i8x16.shuffle shuffle vv>v
fd0e i8x16.swizzle - vv>v
fd0f i8x16.splat - i>v
fd10 i16x8.splat - i>v
fd11 i32x4.splat - i>v
fd12 i64x2.splat - l>v
fd13 f32x4.splat - f>v
fd14 f64x2.splat - d>v
fd15 i8x16.extract_lane_s lane.16 v>i
fd16 i8x16.extract_lane_u lane.16 v>i
fd17 i8x16.replace_lane lane.16 vi>v
fd18 i16x8.extract_lane_s lane.8 v>i
fd19 i16x8.extract_lane_u lane.8 v>i
fd1a i16x8.replace_lane lane.8 vi>v
fd1b i32x4.extract_lane lane.4 v>i
fd1c i32x4.replace_lane lane.4 vi>v
fd1d i64x2.extract_lane lane.2 v>l
fd1e i64x2.replace_lane lane.2 vl>v
fd1f f32x4.extract_lane lane.4 v>f
fd20 f32x4.replace_lane lane.4 vf>v
fd21 f64x2.extract_lane lane.2 v>d
fd22 f64x2.replace_lane lane.2 vd>v
# SIMD: comparisons
fd23 i8x16.eq - vv>v
fd24 i8x16.ne - vv>v
fd25 i8x16.lt_s - vv>v
fd26 i8x16.lt_u - vv>v
fd27 i8x16.gt_s - vv>v
fd28 i8x16.gt_u - vv>v
fd29 i8x16.le_s - vv>v
fd2a i8x16.le_u - vv>v
fd2b i8x16.ge_s - vv>v
fd2c i8x16.ge_u - vv>v
fd2d i16x8.eq - vv>v
fd2e i16x8.ne - vv>v
fd2f i16x8.lt_s - vv>v
fd30 i16x8.lt_u - vv>v
fd31 i16x8.gt_s - vv>v
fd32 i16x8.gt_u - vv>v
fd33 i16x8.le_s - vv>v
fd34 i16x8.le_u - vv>v
fd35 i16x8.ge_s - vv>v
fd36 i16x8.ge_u - vv>v
fd37 i32x4.eq - vv>v
fd38 i32x4.ne - vv>v
fd39 i32x4.lt_s - vv>v
fd3a i32x4.lt_u - vv>v
fd3b i32x4.gt_s - vv>v
fd3c i32x4.gt_u - vv>v
fd3d i32x4.le_s - vv>v
fd3e i32x4.le_u - vv>v
fd3f i32x4.ge_s - vv>v
fd40 i32x4.ge_u - vv>v
fd41 f32x4.eq - vv>v
fd42 f32x4.ne - vv>v
fd43 f32x4.lt - vv>v
fd44 f32x4.gt - vv>v
fd45 f32x4.le - vv>v
fd46 f32x4.ge - vv>v
fd47 f64x2.eq - vv>v
fd48 f64x2.ne - vv>v
fd49 f64x2.lt - vv>v
fd4a f64x2.gt - vv>v
fd4b f64x2.le - vv>v
fd4c f64x2.ge - vv>v
fdd601 i64x2.eq - vv>v
fdd701 i64x2.ne - vv>v
fdd801 i64x2.lt_s - vv>v
fdd901 i64x2.gt_s - vv>v
fdda01 i64x2.le_s - vv>v
fddb01 i64x2.ge_s - vv>v
# SIMD: bits
fd4d v128.not - v>v
fd4e v128.and - vv>v
fd4f v128.andnot - vv>v
fd50 v128.or - vv>v
fd51 v128.xor - vv>v
fd52 v128.bitselect - vvv>v
fd53 v128.any_true - v>i
# SIMD: arithmetic
fd60 i8x16.abs - v>v
fd61 i8x16.neg - v>v
fd62 i8x16.popcnt - v>v
fd63 i8x16.all_true - v>i
fd64 i8x16.bitmask - v>i
fd65 i8x16.narrow_i16x8_s - vv>v
fd66 i8x16.narrow_i16x8_u - vv>v
fd6b i8x16.shl - vi>v
fd6c i8x16.shr_s - vi>v
fd6d i8x16.shr_u - vi>v
fd6e i8x16.add - vv>v
fd6f i8x16.add_sat_s - vv>v
fd70 i8x16.add_sat_u - vv>v
fd71 i8x16.sub - vv>v
fd72 i8x16.sub_sat_s - vv>v
fd73 i8x16.sub_sat_u - vv>v
fd76 i8x16.min_s - vv>v
fd77 i8x16.min_u - vv>v
fd78 i8x16.max_s - vv>v
fd79 i8x16.max_u - vv>v
fd7b i8x16.avgr_u - vv>v
fd7c i16x8.extadd_pairwise_i8x16_s - v>v
fd7d i16x8.extadd_pairwise_i8x16_u - v>v
fd7e i32x4.extadd_pairwise_i16x8_s - v>v
fd7f i32x4.extadd_pairwise_i16x8_u - v>v
fd8001 i16x8.abs - v>v
fd8101 i16x8.neg - v>v
fd8201 i16x8.q15mulr_sat_s - vv>v
fd8301 i16x8.all_true - v>i
fd8401 i16x8.bitmask - v>i
fd8501 i16x8.narrow_i32x4_s - vv>v
fd8601 i16x8.narrow_i32x4_u - vv>v
fd8701 i16x8.extend_low_i8x16_s - v>v
fd8801 i16x8.extend_high_i8x16_s - v>v
fd8901 i16x8.extend_low_i8x16_u - v>v
fd8a01 i16x8.extend_high_i8x16_u - v>v
fd8b01 i16x8.shl - vi>v
fd8c01 i16x8.shr_s - vi>v
fd8d01 i16x8.shr_u - vi>v
fd8e01 i16x8.add - vv>v
fd8f01 i16x8.add_sat_s - vv>v
fd9001 i16x8.add_sat_u - vv>v
fd9101 i16x8.sub - vv>v
fd9201 i16x8.sub_sat_s - vv>v
fd9301 i16x8.sub_sat_u - vv>v
fd9501 i16x8.mul - vv>v
fd9601 i16x8.min_s - vv>v
fd9701 i16x8.min_u - vv>v
fd9801 i16x8.max_s - vv>v
fd9901 i16x8.max_u - vv>v
fd9b01 i16x8.avgr_u - vv>v
fd9c01 i16x8.extmul_low_i8x16_s - vv>v
fd9d01 i16x8.extmul_high_i8x16_s - vv>v
fd9e01 i16x8.extmul_low_i8x16_u - vv>v
fd9f01 i16x8.extmul_high_i8x16_u - vv>v
fda001 i32x4.abs - v>v
fda101 i32x4.neg - v>v
fda301 i32x4.all_true - v>i
fda401 i32x4.bitmask - v>i
fda701 i32x4.extend_low_i16x8_s - v>v
fda801 i32x4.extend_high_i16x8_s - v>v
fda901 i32x4.extend_low_i16x8_u - v>v
fdaa01 i32x4.extend_high_i16x8_u - v>v
fdab01 i32x4.shl - vi>v
fdac01 i32x4.shr_s - vi>v
fdad01 i32x4.shr_u - vi>v
fdae01 i32x4.add - vv>v
fdb101 i32x4.sub - vv>v
fdb501 i32x4.mul - vv>v
fdb601 i32x4.min_s - vv>v
fdb701 i32x4.min_u - vv>v
fdb801 i32x4.max_s - vv>v
fdb901 i32x4.max_u - vv>v
fdba01 i32x4.dot_i16x8_s - vv>v
fdbc01 i32x4.extmul_low_i16x8_s - vv>v
fdbd01 i32x4.extmul_high_i16x8_s - vv>v
fdbe01 i32x4.extmul_low_i16x8_u - vv>v
fdbf01 i32x4.extmul_high_i16x8_u - vv>v
fdc001 i64x2.abs - v>v
fdc101 i64x2.neg - v>v
fdc301 i64x2.all_true - v>i
fdc401 i64x2.bitmask - v>i
fdc701 i64x2.extend_low_i32x4_s - v>v
fdc801 i64x2.extend_high_i32x4_s - v>v
fdc901 i64x2.extend_low_i32x4_u - v>v
fdca01 i64x2.extend_high_i32x4_u - v>v
fdcb01 i64x2.shl - vi>v
fdcc01 i64x2.shr_s - vi>v
fdcd01 i64x2.shr_u - vi>v
fdce01 i64x2.add - vv>v
fdd101 i64x2.sub - vv>v
fdd501 i64x2.mul - vv>v
fddc01 i64x2.extmul_low_i32x4_s - vv>v
fddd01 i64x2.extmul_high_i32x4_s - vv>v
fdde01 i64x2.extmul_low_i32x4_u - vv>v
fddf01 i64x2.extmul_high_i32x4_u - vv>v
fd67 f32x4.ceil - v>v
fd68 f32x4.floor - v>v
fd69 f32x4.trunc - v>v
fd6a f32x4.nearest - v>v
fde001 f32x4.abs - v>v
fde101 f32x4.neg - v>v
fde301 f32x4.sqrt - v>v
fde401 f32x4.add - vv>v
fde501 f32x4.sub - vv>v
fde601 f32x4.mul - vv>v
fde701 f32x4.div - vv>v
fde801 f32x4.min - vv>v
fde901 f32x4.max - vv>v
fdea01 f32x4.pmin - vv>v
fdeb01 f32x4.pmax - vv>v
fd74 f64x2.ceil - v>v
fd75 f64x2.floor - v>v
fd7a f64x2.trunc - v>v
fd9401 f64x2.nearest - v>v
fdec01 f64x2.abs - v>v
fded01 f64x2.neg - v>v
fdef01 f64x2.sqrt - v>v
fdf001 f64x2.add - vv>v
fdf101 f64x2.sub - vv>v
fdf201 f64x2.mul - vv>v
fdf301 f64x2.div - vv>v
fdf401 f64x2.min - vv>v
fdf501 f64x2.max - vv>v
fdf601 f64x2.pmin - vv>v
fdf701 f64x2.pmax - vv>v
# SIMD: conversions
fd5e f32x4.demote_f64x2_zero - v>v
fd5f f64x2.promote_low_f32x4 - v>v
fdf801 i32x4.trunc_sat_f32x4_s - v>v
fdf901 i32x4.trunc_sat_f32x4_u - v>v
fdfa01 f32x4.convert_i32x4_s - v>v
fdfb01 f32x4.convert_i32x4_u - v>v
fdfc01 i32x4.trunc_sat_f64x2_s_zero - v>v
fdfd01 i32x4.trunc_sat_f64x2_u_zero - v>v
fdfe01 f64x2.convert_low_i32x4_s - v>v
fdff01 f64x2.convert_low_i32x4_u - v>v
# relaxed SIMD
fd8002 i8x16.relaxed_swizzle - vv>v
fd8102 i32x4.relaxed_trunc_f32x4_s - v>v
fd8202 i32x4.relaxed_trunc_f32x4_u - v>v
fd8302 i32x4.relaxed_trunc_f64x2_s_zero - v>v
fd8402 i32x4.relaxed_trunc_f64x2_u_zero - v>v
fd8502 f32x4.relaxed_madd - vvv>v
fd8602 f32x4.relaxed_nmadd - vvv>v
fd8702 f64x2.relaxed_madd - vvv>v
fd8802 f64x2.relaxed_nmadd - vvv>v
fd8902 i8x16.relaxed_laneselect - vvv>v
fd8a02 i16x8.relaxed_laneselect - vvv>v
fd8b02 i32x4.relaxed_laneselect - vvv>v
fd8c02 i64x2.relaxed_laneselect - vvv>v
fd8d02 f32x4.relaxed_min - vv>v
fd8e02 f32x4.relaxed_max - vv>v
fd8f02 f64x2.relaxed_min - vv>v
fd9002 f64x2.relaxed_max - vv>v
fd9102 i16x8.relaxed_q15mulr_s - vv>v
fd9202 i16x8.relaxed_dot_i8x16_i7x16_s - vv>v
fd9302 i32x4.relaxed_dot_i8x16_i7x16_add_s - vvv>v
# threads and atomics
fe00 memory.atomic.notify mem.2 ii>i
fe01 memory.atomic.wait32 mem.2 iil>i
fe02 memory.atomic.wait64 mem.3 ill>i
fe03 atomic.fence fence >
fe10 i32.atomic.load mem.2 i>i
fe11 i64.atomic.load mem.3 i>l
fe12 i32.atomic.load8_u mem.0 i>i
fe13 i32.atomic.load16_u mem.1 i>i
fe14 i64.atomic.load8_u mem.0 i>l
fe15 i64.atomic.load16_u mem.1 i>l
fe16 i64.atomic.load32_u mem.2 i>l
fe17 i32.atomic.store mem.2 ii>
fe18 i64.atomic.store mem.3 il>
fe19 i32.atomic.store8 mem.0 ii>
fe1a i32.atomic.store16 mem.1 ii>
fe1b i64.atomic.store8 mem.0 il>
fe1c i64.atomic.store16 mem.1 il>
fe1d i64.atomic.store32 mem.2 il>
fe1e i32.atomic.rmw.add mem.2 ii>i
fe1f i64.atomic.rmw.add mem.3 il>l
fe20 i32.atomic.rmw8.add_u mem.0 ii>i
fe21 i32.atomic.rmw16.add_u mem.1 ii>i
fe22 i64.atomic.rmw8.add_u mem.0 il>l
fe23 i64.atomic.rmw16.add_u mem.1 il>l
fe24 i64.atomic.rmw32.add_u mem.2 il>l
fe25 i32.atomic.rmw.sub mem.2 ii>i
fe26 i64.atomic.rmw.sub mem.3 il>l
fe27 i32.atomic.rmw8.sub_u mem.0 ii>i
fe28 i32.atomic.rmw16.sub_u mem.1 ii>i
fe29 i64.atomic.rmw8.sub_u mem.0 il>l
fe2a i64.atomic.rmw16.sub_u mem.1 il>l
fe2b i64.atomic.rmw32.sub_u mem.2 il>l
fe2c i32.atomic.rmw.and mem.2 ii>i
fe2d i64.atomic.rmw.and mem.3 il>l
fe2e i32.atomic.rmw8.and_u mem.0 ii>i
fe2f i32.atomic.rmw16.and_u mem.1 ii>i
fe30 i64.atomic.rmw8.and_u mem.0 il>l
fe31 i64.atomic.rmw16.and_u mem.1 il>l
fe32 i64.atomic.rmw32.and_u mem.2 il>l
fe33 i32.atomic.rmw.or mem.2 ii>i
fe34 i64.atomic.rmw.or mem.3 il>l
fe35 i32.atomic.rmw8.or_u mem.0 ii>i
fe36 i32.atomic.rmw16.or_u mem.1 ii>i
fe37 i64.atomic.rmw8.or_u mem.0 il>l
fe38 i64.atomic.rmw16.or_u mem.1 il>l
fe39 i64.atomic.rmw32.or_u mem.2 il>l
fe3a i32.atomic.rmw.xor mem.2 ii>i
fe3b i64.atomic.rmw.xor mem.3 il>l
fe3c i32.atomic.rmw8.xor_u mem.0 ii>i
fe3d i32.atomic.rmw16.xor_u mem.1 ii>i
fe3e i64.atomic.rmw8.xor_u mem.0 il>l
fe3f i64.atomic.rmw16.xor_u mem.1 il>l
fe40 i64.atomic.rmw32.xor_u mem.2 il>l
fe41 i32.atomic.rmw.xchg mem.2 ii>i
fe42 i64.atomic.rmw.xchg mem.3 il>l
fe43 i32.atomic.rmw8.xchg_u mem.0 ii>i
fe44 i32.atomic.rmw16.xchg_u mem.1 ii>i
fe45 i64.atomic.rmw8.xchg_u mem.0 il>l
fe46 i64.atomic.rmw16.xchg_u mem.1 il>l
fe47 i64.atomic.rmw32.xchg_u mem.2 il>l
fe48 i32.atomic.rmw.cmpxchg mem.2 iii>i
fe49 i64.atomic.rmw.cmpxchg mem.3 ill>l
fe4a i32.atomic.rmw8.cmpxchg_u mem.0 iii>i
fe4b i32.atomic.rmw16.cmpxchg_u mem.1 iii>i
fe4c i64.atomic.rmw8.cmpxchg_u mem.0 ill>l
fe4d i64.atomic.rmw16.cmpxchg_u mem.1 ill>l
fe4e i64.atomic.rmw32.cmpxchg_u mem.2 ill>l
"""

_TYPES = {"i": I32, "l": I64, "f": F32, "d": F64, "v": V128}


def _rows() -> dict[str, Opcode]:
    signatures: dict[str, tuple[tuple[int, ...] | None, tuple[int, ...] | None]] = {"*": (None, None)}
    rows: dict[str, Opcode] = {}
    for line in TABLE.splitlines():
        if not line or line[0] == "#":
            continue
        code, name, immediate, signature = line.split(" ")
        if signature not in signatures:
            params, results = (tuple(_TYPES[c] for c in side) for side in signature.split(">"))
            signatures[signature] = params, results
        kind, _, bound = immediate.partition(".")
        rows[name] = Opcode(name, bytes.fromhex(code), kind, int(bound or 0), *signatures[signature])
    return rows


OPCODES: dict[str, Opcode] = _rows()


def opcode(name: str) -> Opcode:
    """The row of instruction `name`. Raises InternalError for a name that is not in the table."""
    row = OPCODES.get(name)
    if row is None:
        raise InternalError(f"WebAssembly instruction: expected a name of the opcode table, got {name!r}")
    return row
