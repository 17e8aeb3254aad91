/**
 * Which tasks hold a page up, for `test_responsive.py`: `node responsive.mjs LONGEST` prints what it saw.
 *
 * The browser's own long tasks are the judge: those of over 50 ms on the main thread. On a busy machine a task also takes
 * long that only waits for a processor, so the trace says for how long each has had one. What shares the processor's core
 * makes that longer, too: so a page in which a task had more than LONGEST ms is visited again, up to three times in all,
 * and the quietest visit counts. What a page itself does too long is in each.
 */

import { launchChromium } from "../../web/chromium.mjs";
import { startServer } from "../../web/serve.mjs";

const WAIT = { timeout: 90_000 };
const VISITS = 3;
const LONGEST = Number(process.argv[2]);
const MARK = "responsive: the page was watched until here";

/** Everything that the browser does from now on, as a trace; calling the result ends it. */
async function trace(browser) {
  const session = await browser.newBrowserCDPSession();
  const events = [];
  session.on("Tracing.dataCollected", ({ value }) => events.push(...value));
  const includedCategories = ["toplevel", "blink.user_timing"];
  await session.send("Tracing.start", { traceConfig: { includedCategories }, transferMode: "ReportEvents" });
  return async () => {
    const complete = new Promise((resolve) => session.once("Tracing.tracingComplete", resolve));
    await session.send("Tracing.end");
    await complete;
    await session.detach();
    return events;
  };
}

/**
 * The long tasks of a page while `act` goes on, with their milliseconds and those on a processor: null for a task that
 * the trace lacks.
 */
async function watch(context, url, act) {
  const page = await context.newPage();
  await page.addInitScript(() => {
    window.longTasks = [];
    new PerformanceObserver((list) => {
      for (const { startTime, duration } of list.getEntries()) window.longTasks.push({ startTime, duration });
    }).observe({ type: "longtask", buffered: true });
  });
  // The trace of a process that has just started may begin late: so the page's process shows another page before.
  await page.goto(IDLE);
  const end = await trace(context.browser());
  await page.goto(url);
  const told = await act(page);
  const long = await page.evaluate(() => window.longTasks);
  const marked = await page.evaluate((mark) => performance.mark(mark).startTime, MARK);
  const events = await end();
  await page.close();
  const mark = events.find(({ name }) => name === MARK);
  const tasks = events
    .filter(({ pid, tid, tdur }) => pid === mark.pid && tid === mark.tid && tdur !== undefined)
    .filter(({ name, ts, dur }) => name.endsWith("RunTask") && ts + dur > mark.ts - marked * 1e3)
    .map(({ ts, dur, tdur }) => ({
      startTime: (ts - mark.ts) / 1e3 + marked,
      duration: dur / 1e3,
      processor: tdur / 1e3,
    }));
  const found = long.map(({ startTime, duration }) => {
    // a long task may be reported without its first or last part
    const during = (task) =>
      task.startTime < startTime + duration && startTime < task.startTime + task.duration;
    const times = tasks.filter(during).map((task) => task.processor);
    return { startTime, duration, processor: times.length > 0 ? Math.max(...times) : null };
  });
  return { told, tasks: tasks.length, long: found };
}

/** The most milliseconds that a task had a processor for. A task that the trace lacks may have had any number. */
function longest({ long }) {
  return Math.max(0, ...long.map(({ processor }) => processor ?? Infinity));
}

/** The quietest visit of those that are needed. */
async function watchQuietest(context, url, act) {
  let quietest = await watch(context, url, act);
  for (let visits = 1; visits < VISITS && longest(quietest) > LONGEST; visits++) {
    const visit = await watch(context, url, act);
    if (longest(visit) < longest(quietest)) quietest = visit;
  }
  return quietest;
}

/** What is known to hold a page up: it has to be seen. */
async function freeze(page) {
  await page.evaluate(
    () =>
      new Promise((resolve) => {
        setTimeout(() => {
          let x = 0;
          for (let i = 0; i < 5e7; i++) x = (x * 31 + i) | 0;
          resolve(x);
        }, 50);
      }),
  );
  await page.waitForTimeout(200); // observers are told in a task of their own
}

async function train(page) {
  await page.locator("#digits-note", { hasText: /^trained|Error/ }).waitFor(WAIT);
  return page.locator("#digits-note").innerText();
}

async function write(page) {
  await page.locator("#train-characters").click();
  await page.locator(".sample:not(.writing)").nth(1).waitFor(WAIT);
  return page.locator("#characters-note").innerText();
}

async function inspect(page) {
  await page.locator(".graph svg").waitFor(WAIT);
  return page.locator("#kernel-note").innerText();
}

const server = await startServer();
const browser = await launchChromium();
const IDLE = `${server.url}/playground/icon.svg`;
// what the digits' page has stored when it started, the others start from
const context = await browser.newContext({ viewport: { width: 1200, height: 800 } });
const address = `${server.url}/playground/`;
try {
  console.log(
    JSON.stringify({
      frozen: await watch(context, IDLE, freeze),
      digits: await watchQuietest(context, `${address}#digits`, train),
      characters: await watchQuietest(context, `${address}#characters`, write),
      kernels: await watchQuietest(context, `${address}#kernels`, inspect),
    }),
  );
} finally {
  await browser.close();
  server.close();
}
