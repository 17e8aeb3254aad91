/** Errors as they are shown. */

/** The name and message of an error. Programs in Python see the names of Python's errors. */
export function described(error: unknown): { readonly name: string; readonly message: string } {
  if (!(error instanceof Error)) return { name: "Error", message: String(error) };
  const { message, cause } = error;
  const raised = typeof cause === "string" && cause.includes('File "<exec>"') ? cause.trimEnd() : "";
  const name = raised.endsWith(`: ${message}`)
    ? /(\w+)$/.exec(raised.slice(0, -message.length - 2))?.[1]
    : undefined;
  return { name: name ?? error.name, message };
}

/** An error as one line of text. */
export function messageOf(error: unknown): string {
  const { name, message } = described(error);
  return `${name}: ${message}`;
}
