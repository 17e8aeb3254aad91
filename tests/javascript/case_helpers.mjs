/** What cases share. */

/** What a function throws, or a promise rejects with, as plain data. */
export async function thrown(run) {
  try {
    await run();
  } catch (error) {
    const { name, message, cause } = error;
    return { name, message, isError: error instanceof Error, cause: typeof cause };
  }
  return "nothing";
}

/** A seeded classifier: a class of the user's, with layers in it. */
export function makeNet(nn) {
  class Net {
    hidden = new nn.Linear(4, 8);
    norm = new nn.LayerNorm(8);
    out = new nn.Linear(8, 3, { bias: false });

    forward(x) {
      return this.out.forward(this.norm.forward(this.hidden.forward(x)).gelu());
    }
  }
  return new Net();
}

export const rows = (count, width) =>
  Array.from({ length: count }, (_, i) => Array.from({ length: width }, (_, j) => Math.sin(i * width + j)));
