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

/** The address of the worker with these settings. `script` is the tag's, which may have a query of its own. */
export function addressOf(script: string, { isolate, offline }: Settings): string {
  const address = new URL(script);
  if (isolate !== undefined) address.searchParams.set("isolate", isolate);
  if (offline) address.searchParams.set("offline", "");
  return address.href;
}
