/** Runs some cases, all unless named; results by name, `{ failed }` for one that throws. */
export async function runCases(cases, names, pg, host) {
  const results = {};
  for (const name of names.length > 0 ? names : Object.keys(cases)) {
    try {
      results[name] = await cases[name](pg, host);
    } catch (error) {
      results[name] = { failed: String(error?.stack ?? error).slice(0, 2000) };
    }
  }
  return results;
}
