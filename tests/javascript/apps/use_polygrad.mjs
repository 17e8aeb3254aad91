/** What every framework's page computes: on its own thread, in a worker, and by an exported model. */

import { create } from "polygrad";
import { load } from "polygrad/runtime";

export async function main(baseURL) {
  const seen = [];
  for (const worker of [false, true]) {
    const pg = await create({ baseURL, worker });
    seen.push(await new pg.Tensor([1, 2]).mul(3).tolist());
    pg.close();
  }
  const model = await load(`${baseURL}/model.pgrd`, { baseURL });
  const { output } = await model.run({ x: new Float32Array([1, 2, 3]) });
  return [...seen, Array.from(output.data)];
}
