/** Errors as they are shown. */

/** Its name and message: an error of Python that is none of polygrad's has its own name before the message. */
export function described(error: unknown): { readonly name: string; readonly message: string } {
  if (!(error instanceof Error)) return { name: "Error", message: String(error) };
  const own = /^(\w+): (.*)$/s.exec(error.name === "PolygradError" ? error.message : "");
  return { name: own?.[1] ?? error.name, message: own?.[2] ?? error.message };
}

/** The same as one line of text. */
export function messageOf(error: unknown): string {
  const { name, message } = described(error);
  return `${name}: ${message}`;
}
