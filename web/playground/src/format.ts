/** Values as a program's `console.log` shows them. */

const LONGEST = 72;

function isList(value: unknown): value is ArrayLike<unknown> {
  return Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));
}

function formatNumber(value: number): string {
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(7)));
}

function inside(value: unknown, depth: number): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number") return formatNumber(value);
  if (typeof value === "bigint") return `${String(value)}n`;
  if (typeof value === "function") return `[function ${value.name}]`;
  if (typeof value !== "object" || value === null) return String(value);
  if (isList(value))
    return wrapped(
      "[",
      Array.from(value, (x) => inside(x, depth + 1)),
      "]",
      depth,
    );
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return `[${value.constructor.name}]`;
  const entries = Object.entries(value).map(([key, x]) => `${key}: ${inside(x, depth + 1)}`);
  return wrapped("{", entries, "}", depth);
}

/** Items on one line where they fit, else one below the other. */
function wrapped(open: string, items: readonly string[], close: string, depth: number): string {
  const line = items.join(", ");
  if (line.length <= LONGEST && !line.includes("\n")) return `${open} ${line} ${close}`;
  const indent = "  ".repeat(depth + 1);
  return `${open}\n${items.map((item) => indent + item).join(",\n")}\n${"  ".repeat(depth)}${close}`;
}

/** Arguments of `console.log` as one line of text, or several. */
export function formatAll(values: readonly unknown[]): string {
  return values.map((value) => (typeof value === "string" ? value : inside(value, 0))).join(" ");
}
