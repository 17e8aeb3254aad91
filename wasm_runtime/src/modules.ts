/**
 * Compiled modules by their bytes. The same code is compiled once, as long as something uses the module.
 *
 * The table holds modules weakly, and a finalizer drops an entry when its module has been collected.
 */

import { CompileError } from "./errors";

interface Entry {
  readonly code: Uint8Array;
  readonly module: WeakRef<WebAssembly.Module>;
}

const table = new Map<number, Entry[]>();

const collected = new FinalizationRegistry<number>((hash) => {
  const alive = (table.get(hash) ?? []).filter((entry) => entry.module.deref() !== undefined);
  if (alive.length > 0) table.set(hash, alive);
  else table.delete(hash);
});

/** FNV-1a, 32 bits. */
function hashOf(code: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (const byte of code) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash;
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

function find(hash: number, code: Uint8Array): WebAssembly.Module | undefined {
  for (const entry of table.get(hash) ?? []) {
    const module = entry.module.deref();
    if (module !== undefined && equal(entry.code, code)) return module;
  }
  return undefined;
}

function keep(hash: number, code: Uint8Array, module: WebAssembly.Module): WebAssembly.Module {
  table.set(hash, [...(table.get(hash) ?? []), { code, module: new WeakRef(module) }]);
  collected.register(module, hash);
  return module;
}

/** The module of `code`, which is compiled unless the table has it. Throws WebAssembly.CompileError. */
export function compileModule(code: Uint8Array): WebAssembly.Module {
  const hash = hashOf(code);
  const cached = find(hash, code);
  if (cached !== undefined) return cached;
  const copy = code.slice();
  return keep(hash, copy, new WebAssembly.Module(copy));
}

/** `compileModule` in the background. Rejects with CompileError. */
export async function compileModuleLater(code: Uint8Array): Promise<WebAssembly.Module> {
  const hash = hashOf(code);
  const cached = find(hash, code);
  if (cached !== undefined) return cached;
  const copy = code.slice();
  try {
    const module = await WebAssembly.compile(copy);
    return find(hash, code) ?? keep(hash, copy, module);
  } catch (cause) {
    throw new CompileError(`module: expected one this engine accepts, got ${String(cause)}`, { cause });
  }
}

/** How many modules the table has. For tests. */
export function moduleCount(): number {
  return [...table.values()].reduce((n, entries) => n + entries.length, 0);
}
