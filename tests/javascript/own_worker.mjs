/** A worker of a program's own: `create` in it, and in a worker of it; and the pixels of what it draws. */

import { create } from "/package/polygrad.mjs";

const seen = {};
try {
  for (const worker of [false, true]) {
    const pg = await create({ worker, baseURL: "../package" });
    const canvas = new OffscreenCanvas(2, 1);
    const context = canvas.getContext("2d");
    context.fillStyle = "rgb(10, 20, 30)";
    context.fillRect(0, 0, 1, 1);
    const options = { channels: 3 };
    seen[worker ? "worker" : "direct"] = {
      sum: await pg.Tensor.ones(3).sum().item(),
      canvas: await pg.Tensor.fromImage(canvas, options).tolist(),
      bitmap: await pg.Tensor.fromImage(await createImageBitmap(canvas), options).tolist(),
    };
    pg.close();
  }
} catch (error) {
  seen.failed = String(error);
}
postMessage(seen);
