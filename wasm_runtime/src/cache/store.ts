/** What a host has for files that are kept: folders of named bytes. */

export interface FileStore {
  /** The names of all folders. */
  folders(): Promise<string[]>;
  /** The names in a folder whose bytes are complete; none where it does not exist. */
  names(folder: string): Promise<string[]>;
  /** The bytes of that name; undefined where there are none. */
  read(folder: string, name: string): Promise<Uint8Array<ArrayBuffer> | undefined>;
  /**
   * Store bytes: all of them or, when this rejects, none, also when two write the same name at once. The folder is made if
   * necessary.
   */
  write(folder: string, name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  /** Remove a name, or a folder with all names in it, if it is there. */
  remove(folder: string, name?: string): Promise<void>;
}

/** Whether a store has no room for what was written. */
export function saysFull(error: unknown): boolean {
  const { name, code } = (error ?? {}) as { name?: unknown; code?: unknown };
  return name === "QuotaExceededError" || code === "ENOSPC" || code === "EDQUOT";
}
