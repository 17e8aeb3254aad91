/** What Firefox does on device WEBGPU, as JSON. `null`: it has no adapter. */

import { launch } from "puppeteer-core";

import { startServer } from "../../web/serve.mjs";

const server = await startServer();
const browser = await launch({
  browser: "firefox",
  executablePath: process.env.FIREFOX_PATH ?? "/usr/bin/firefox-esr",
  headless: true,
  protocolTimeout: 120_000,
  extraPrefsFirefox: { "dom.webgpu.enabled": true, "gfx.webgpu.ignore-blocklist": true },
});
try {
  const page = await browser.newPage();
  await page.goto(`${server.url}/run.html`);
  const seen = await page.evaluate(async () => {
    const adapter = await window.navigator.gpu?.requestAdapter();
    if (!adapter) return null;
    const { Tensor, nn } = await window.polygrad.create({ device: "WEBGPU" });
    const rows = (values) => new Tensor(values);
    const product = rows([
      [1, 2],
      [3, 4],
    ]).matmul(
      rows([
        [5, 6],
        [7, 8],
      ]),
    );
    const layer = new nn.Linear(2, 3);
    return {
      device: product.device,
      product: await product.tolist(),
      sum: await product.exp().log().sum().item(),
      softmax: await product.mul(0.1).softmax(-1).sum().item(),
      sorted: await rows([3, 1, 2]).sort()[0].tolist(),
      small: await rows([250, 251]).cast("uint8").add(10).tolist(),
      finite: (await layer.forward(rows([[1, 2]])).data()).every(Number.isFinite),
    };
  });
  console.log(JSON.stringify(seen));
} finally {
  await browser.close();
  server.close();
}
