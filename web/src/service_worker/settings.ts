/** What a page asks of its service worker: attributes of the script tag, and the query of the worker's address. */

export interface Settings {
  /** The Cross-Origin-Embedder-Policy of pages and workers, with which they may share memory; undefined: unchanged. */
  readonly isolate: "require-corp" | "credentialless" | undefined;
  /** Whether answers are kept for when there is no network. */
  readonly offline: boolean;
}

/** The settings in `data-isolate`, which may name the policy, and `data-offline`. Throws where there is neither. */
export function settingsOf({ isolate, offline }: Readonly<Record<string, string | undefined>>): Settings {
  if (isolate === undefined && offline === undefined) {
    throw new Error("expected the attribute data-isolate or data-offline, got neither");
  }
  const policy = isolate === "" ? "require-corp" : isolate;
  if (policy !== undefined && policy !== "require-corp" && policy !== "credentialless") {
    throw new Error(`data-isolate: expected require-corp or credentialless, got ${policy}`);
  }
  return { isolate: policy, offline: offline !== undefined };
}

export function queryOf({ isolate, offline }: Settings): string {
  const query = new URLSearchParams({ ...(isolate && { isolate }), ...(offline && { offline: "" }) });
  return query.toString();
}
