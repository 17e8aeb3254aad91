/** Grids of workgroups in a Program: sizes, possibly with Variables. `polygrad/runtime/grid.py` is the same in Python. */

import { ProgramError } from "./errors";
import { MAX_GRID } from "./limits";

/** A number of workgroups: a number, the name of a Variable, or an operation on sizes (see `gridSize`). */
export type GridSize = number | string | readonly [string, GridSize] | readonly [string, GridSize, GridSize];

const MAX_SHIFT = 52;

/** Integer operations of grids' sizes. IDIV and MOD round to minus infinity. */
const UNARY: Readonly<Record<string, (a: number) => number>> = { NEG: (a) => -a };
const BINARY: Readonly<Record<string, (a: number, b: number) => number>> = {
  ADD: (a, b) => a + b,
  SUB: (a, b) => a - b,
  MUL: (a, b) => a * b,
  IDIV: (a, b) => Math.floor(a / b),
  MOD: (a, b) => a - b * Math.floor(a / b),
  MAX: Math.max,
  SHL: (a, b) => (isShift(b) ? a * 2 ** b : NaN),
  SHR: (a, b) => (isShift(b) ? Math.floor(a / 2 ** b) : NaN),
  AND: (a, b) => Number(BigInt(a) & BigInt(b)),
};

const isShift = (b: number): boolean => b >= 0 && b <= MAX_SHIFT;

/** The value of a grid's size for these values of the Variables. Throws ProgramError for one out of range. */
export function gridSize(size: GridSize, variables: Readonly<Record<string, number>>): number {
  const value = valueOf(size, variables);
  if (value >= 0 && value <= MAX_GRID) return value;
  throw new ProgramError(`run: expected a grid of 0 to ${MAX_GRID} workgroups, got ${value}`);
}

function valueOf(size: GridSize, variables: Readonly<Record<string, number>>): number {
  if (typeof size === "number") return size;
  let made: number | undefined;
  if (typeof size === "string") {
    made = variables[size];
  } else {
    const [op, ...operands] = size;
    const [a = NaN, b = NaN] = operands.map((x) => valueOf(x, variables));
    made = operands.length === 1 ? UNARY[op]?.(a) : BINARY[op]?.(a, b);
  }
  if (made !== undefined && Number.isSafeInteger(made)) return made;
  throw new ProgramError(`run: expected a size of a grid, got ${JSON.stringify(size)}`);
}

/** Whether these are three sizes over these Variables. One that is a plain number is positive. */
export function isGrid(grid: unknown, variables: ReadonlyMap<string, number>): boolean {
  if (!Array.isArray(grid) || grid.length !== 3) return false;
  return grid.every((n) => (typeof n === "number" ? n > 0 && n <= MAX_GRID : true) && isSize(n, variables));
}

function isSize(size: unknown, variables: ReadonlyMap<string, number>): boolean {
  if (typeof size === "string") return variables.has(size);
  if (!Array.isArray(size)) return Number.isSafeInteger(size);
  const [op, ...operands] = size as readonly unknown[];
  const operations = operands.length === 1 ? UNARY : operands.length === 2 ? BINARY : {};
  return (
    typeof op === "string" && Object.hasOwn(operations, op) && operands.every((x) => isSize(x, variables))
  );
}
