/**
 * The start of an exported file, up to its values: one Program (`program.ts`), or a bundle of several Programs that share
 * memory, for one device or several, with other files beside them. `polygrad/runtime/bundle.py` describes the format of
 * bundles.
 */

import { ProgramError } from "./errors";
import { MAX_TARGETS } from "./limits";
import { hasMagic, isPart, PREFIX, readHeader, takeParts, type Part } from "./parts";
import type { PieceReader } from "./pieces";
import { readProgram, readProgramLater, type Program } from "./program";
import { parseJson } from "./strict_json";

const MAGIC = "PGRB";
const VERSION = 3;
const FIELDS = ["files", "kind", "programs", "settings", "values", "zeros"];
const FORMAT = { what: "bundle", magic: MAGIC, versions: [VERSION, 2] };

/** The kind of an exported step, and the name of its Program. */
export const STEP = "step";

/** The function that loads each kind of file. */
const LOADERS: Readonly<Record<string, string>> = {
  [STEP]: "load",
  "text-generation": "loadLanguageModel",
  "feature-extraction": "loadTextEncoder",
  "text-classification": "loadTextClassifier",
};

/** Programs by name. */
export type NamedPrograms = ReadonlyMap<string, Program>;

/**
 * An exported file without its values. `targets`: the Programs for each device, the preferred one first. `values`: what
 * there is to know of them. `zeros`: the values that are zero at first.
 */
export interface Head {
  readonly kind: string;
  readonly targets: readonly NamedPrograms[];
  readonly files: ReadonlyMap<string, Uint8Array>;
  readonly settings: Readonly<Record<string, unknown>>;
  readonly zeros: readonly string[];
  readonly values: Part;
}

type Section = Part & { readonly name: string };
type ProgramSection = Section & { readonly target?: number };

type Header = Pick<Head, "kind" | "zeros" | "values"> & {
  readonly settings: Part;
  readonly programs: readonly ProgramSection[];
  readonly files: readonly Section[];
};

/** The start of a file of a kind. Rejects with ProgramError for a damaged file, and for one of another kind. */
export async function readHead(reader: PieceReader, kind: string): Promise<Head> {
  const head = await readAnyHead(reader);
  if (head.kind === kind) return head;
  const loader = Object.hasOwn(LOADERS, head.kind) ? LOADERS[head.kind] : undefined;
  throw new ProgramError(
    `${LOADERS[kind] ?? "load"}: expected ${described(kind)}, got ${described(head.kind)}: ` +
      (loader === undefined ? "use a newer polygrad" : `use ${loader}`),
  );
}

const described = (kind: string): string => (kind === STEP ? "an exported step" : `a file for ${kind}`);

/** The start of a file. Rejects with ProgramError for a damaged one. */
export async function readAnyHead(reader: PieceReader): Promise<Head> {
  const prefix = await reader.take(PREFIX);
  return hasMagic(prefix, MAGIC) ? readBundle(prefix, reader) : readStep(prefix, reader);
}

async function readStep(prefix: Uint8Array, reader: PieceReader): Promise<Head> {
  const { program, values } = await readProgramLater(prefix, reader);
  return {
    kind: STEP,
    targets: [new Map([[STEP, program]])],
    files: new Map(),
    settings: {},
    zeros: [],
    values,
  };
}

async function readBundle(prefix: Uint8Array, reader: PieceReader): Promise<Head> {
  const { kind, zeros, values, ...header } = await readHeader<Header>(prefix, reader, FORMAT, checkHeader);
  const sections = [...header.programs, ...header.files];
  const names = sections.map(({ name }) => name);
  const [text = new Uint8Array(), ...parts] = await takeParts(
    reader,
    [header.settings, ...sections],
    ["settings", ...names],
  );
  const settings = settingsOf(text);
  const count = Math.max(0, ...header.programs.map(({ target = 0 }) => target + 1));
  const targets = Array.from({ length: count }, () => new Map<string, Program>());
  const files = new Map<string, Uint8Array>();
  for (const [i, name] of names.entries()) {
    const bytes = parts[i] ?? new Uint8Array();
    if (i >= header.programs.length) files.set(name, bytes);
    else targets[header.programs[i]?.target ?? 0]?.set(name, await readProgram(bytes));
  }
  const head = { kind, targets, files, settings, zeros, values };
  checkTargets(head);
  return head;
}

/** Throws TypeError for a header that contradicts itself. */
function checkHeader(header: Header, version: number): void {
  const { kind, settings, programs, files, zeros, values } = header;
  const isGood =
    Object.keys(header).sort().join() === FIELDS.join() &&
    typeof kind === "string" &&
    areSections(programs, version > 2) &&
    areSections(files, false) &&
    Array.isArray(zeros) &&
    zeros.every((name) => typeof name === "string") &&
    [settings, values].every((part) => isPart(part));
  if (!isGood) throw new TypeError("no header with programs and files");
}

/** Whether this is a list of sections whose names, or pairs of name and target, are different. */
function areSections(list: unknown, haveTargets: boolean): boolean {
  if (!Array.isArray(list)) return false;
  const sections = list.map((section) => (section ?? {}) as Partial<ProgramSection>);
  const more = haveTargets ? ["name", "target"] : ["name"];
  const keys = new Set(sections.map(({ name, target = 0 }) => `${target} ${name}`));
  const isTarget = (n: unknown): boolean =>
    Number.isSafeInteger(n) && (n as number) >= 0 && (n as number) < MAX_TARGETS;
  return (
    keys.size === list.length &&
    sections.every(({ target = 0, ...section }) => typeof section.name === "string" && isTarget(target)) &&
    sections.every((section) => isPart(section, ...more))
  );
}

function settingsOf(text: Uint8Array): Head["settings"] {
  let settings: unknown;
  try {
    settings = parseJson(text, true);
  } catch (cause) {
    throw new ProgramError(`bundle: expected settings of JSON, got damaged bytes (${String(cause)})`, {
      cause,
    });
  }
  if (typeof settings === "object" && settings !== null && !Array.isArray(settings)) {
    return settings as Head["settings"];
  }
  throw new ProgramError("bundle: expected an object of settings, got other JSON: the file is damaged");
}

/** Throws ProgramError unless the Programs agree on what they share. */
function checkTargets({ kind, targets, zeros }: Head): void {
  if (targets.length === 0 || targets.some(({ size }) => size === 0)) {
    throw new ProgramError("bundle: expected Programs for each target, got none");
  }
  if (kind === STEP && !targets.every(({ size }) => size === 1 && targets[0]?.has(STEP))) {
    throw new ProgramError("bundle: expected the Program of an exported step, got others");
  }
  const [first = new Map<string, string>(), ...others] = targets.map(interfaceOf);
  for (const other of others) {
    const key = [...first.keys(), ...other.keys()].find((key) => first.get(key) !== other.get(key));
    if (key !== undefined) {
      throw new ProgramError(`bundle: expected targets with the same ${key}, got one with another, or none`);
    }
  }
  const missing = zeros.find((name) => !first.has(sharedKey(name)));
  if (missing !== undefined) throw new ProgramError(`bundle: expected a Program with ${missing}, got none`);
}

const sharedKey = (name: string): string => JSON.stringify([name]);

/**
 * What all targets have in common, as texts: the kind of each parameter and state, of each Program's inputs and outputs,
 * and its Variables. Throws ProgramError for Programs that contradict each other.
 */
function interfaceOf(programs: NamedPrograms): Map<string, string> {
  const withValues = [...programs].find(([, { values }]) => values.length > 0);
  if (withValues !== undefined) {
    throw new ProgramError(
      `bundle: ${withValues[0]}: expected a Program without values, got one with values`,
    );
  }
  if (new Set([...programs.values()].map(({ device }) => device)).size !== 1) {
    throw new ProgramError("bundle: expected Programs of a target for one device");
  }
  const kinds = new Map<string, string>();
  for (const [program, { buffers, variables }] of programs) {
    const bounds = variables.map(({ name, lo, hi }) => JSON.stringify([name, lo, hi])).sort();
    kinds.set(JSON.stringify([program, "variables"]), bounds.join());
    for (const { role, name, dtype, size, shape } of buffers) {
      if (role === "scratch") continue;
      if (name === "" || shape === null)
        throw new ProgramError(`bundle: expected every ${role} to have a name`);
      const key =
        role === "param" || role === "state" ? sharedKey(name) : JSON.stringify([program, role, name]);
      const kind = `${dtype} ${JSON.stringify(shape)} of ${size} elements`; // the shape may have Variables
      const other = kinds.get(key) ?? kind;
      kinds.set(key, kind);
      if (other !== kind) throw new ProgramError(`bundle: ${name}: expected ${other} as before, got ${kind}`);
    }
  }
  return kinds;
}
