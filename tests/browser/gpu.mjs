/** What a page does with a GPU, as JSON: reads of every kind, the JavaScript API, and a GPU process that is killed. */

import { launchChromium } from "../../web/chromium.mjs";
import { startServer } from "../../web/serve.mjs";

/** Seconds of a product of small and of large matrices, by the profile; whether Python cannot wait for them is said. */
const PROFILE = `
from polygrad import Tensor, TinyJit
from polygrad.engine.profile import profile
product = TinyJit(lambda a, b: (a @ b).realize())
def seconds(n):
    a = Tensor.ones(n, n, device="WEBGPU").contiguous().realize()
    product.reset()
    return sum(launch.seconds for launch in profile(lambda: product(a, a), 0.01).launches)
`;

/** What happens in the page before the process is killed. */
async function before(profile) {
  const message = async (call) => {
    try {
      return ["", await call()];
    } catch (error) {
      return [error.message];
    }
  };
  const said = [];
  const python = await window.polygrad.load({
    env: { DEVICE: "auto" },
    stderr: (text) => void said.push(text),
  });
  window.python = python;
  await python.runPythonAsync(
    "from polygrad import Device, Tensor; x = Tensor([1, 2, 3], device='WEBGPU') * 2",
  );
  const { Tensor, Device, nn } = await window.polygrad.create({ device: "WEBGPU" });
  const product = new Tensor([
    [1, 2],
    [3, 4],
  ]).matmul(
    new Tensor([
      [5, 6],
      [7, 8],
    ]),
  );
  const layer = new nn.Linear(2, 3);
  return {
    auto: await python.runPythonAsync("Device.DEFAULT"),
    said: said.join(""),
    waited: await python.runPythonAsync("str(x.tolist())"),
    awaited: await python.runPythonAsync("str((await x.data_async()).tolist())"),
    atOnce: await message(() => python.runPython("x.tolist()")),
    seconds: (await python.runPythonAsync(`${profile}[seconds(16), seconds(256)]`)).toJs(),
    measuredAtOnce: await message(() => python.runPython("seconds(16)")),
    still: await python.runPythonAsync("str(x.sum().item())"),
    defaultDevice: String(Device.DEFAULT),
    product: await product.tolist(),
    device: product.device,
    finite: (await layer.forward(new Tensor([[1, 2]])).data()).every(Number.isFinite),
  };
}

/** What happens after it. */
async function after() {
  const results = [];
  for (let i = 0; i < 3; i++) {
    results.push(
      await window.python
        .runPythonAsync("str((Tensor([5, 6], device='WEBGPU') + 1).tolist())")
        .catch((error) => error.message.trim().split("\n").at(-1)),
    );
  }
  const stale = await window.python
    .runPythonAsync("(x + 1).tolist()")
    .catch((error) => error.message.trim().split("\n").at(-1));
  return { results, stale };
}

const server = await startServer();
const browser = await launchChromium();
try {
  const page = await browser.newPage();
  await page.goto(`${server.url}/run.html`);
  const seen = await page.evaluate(before, PROFILE);
  const session = await browser.newBrowserCDPSession();
  session.send("Browser.crashGpuProcess").catch(() => undefined);
  await new Promise((resolve) => setTimeout(resolve, 2000));
  console.log(JSON.stringify({ ...seen, ...(await page.evaluate(after)) }));
} finally {
  await browser.close();
  server.close();
}
