/**
 * Limits of exported files. They bound what a reader does for a file of somebody else before it trusts it.
 * `polygrad/runtime/limits.py` has the same numbers.
 */

export const MAX_HEADER = 67_108_864; // bytes of a header
export const MAX_DEPTH = 32; // of lists and objects in each other, in JSON
export const MAX_INTEGER = 9_007_199_254_740_991;
export const MAX_BYTES = 1_099_511_627_776; // of a buffer, of the arena, and of a part of a file
export const MAX_RANK = 64; // sizes in a shape
export const MAX_ARGUMENTS = 1000; // of a kernel: its pointers and its variables
export const MAX_THREADS = 4096;
export const MAX_TARGETS = 64; // of a file
export const MAX_INVOCATIONS = 1024; // in a workgroup
export const MAX_SUBGROUP = 128; // invocations
export const MAX_GRID = 2_147_483_647; // workgroups along an axis
