/** Modules that are served, not bundled. `scripts/build.mjs` keeps the comments, which tell bundlers to leave them alone. */

/** The module at `url`. */
export const importServed = (url: string): Promise<unknown> =>
  import(/* webpackIgnore: true */ /* turbopackIgnore: true */ /* @vite-ignore */ url);
