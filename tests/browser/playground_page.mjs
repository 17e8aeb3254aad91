/** What drivers of the playground share: a page of it, and a program that is run in it. */

export const WAIT = { timeout: 90_000 };

/** A page, and what its console complains of. */
export async function open(browser, url, options) {
  const page = await (await browser.newContext(options)).newPage();
  const complaints = [];
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(url);
  return { page, complaints };
}

/** Serve the worker of programs with a policy that forbids eval, as a host may do. */
export async function forbidEval(page) {
  await page.route("**/runner.mjs", async (route) => {
    const response = await route.fetch();
    const headers = response.headers();
    for (const name of ["content-encoding", "content-length"]) delete headers[name];
    headers["content-security-policy"] = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'";
    await route.fulfill({ response, headers });
  });
}

/** The output of a program, run with the keyboard; `source` in place of the example's where given. */
export async function runProgram(page, name, source) {
  await page.locator("#program").selectOption(name);
  await page.locator(`#source[data-program="${name}"] .cm-content`).click();
  if (source !== undefined) {
    await page.keyboard.press("Control+a");
    await page.keyboard.insertText(source);
  }
  await page.keyboard.press("Control+Enter");
  await page
    .locator("#output", { hasText: /finished|stopped/ })
    .or(page.locator(".failure"))
    .first()
    .waitFor(WAIT);
  return page.locator("#output").innerText();
}
