/** tfjs with its WebAssembly backend. */

async function script(address) {
  await new Promise((resolve, reject) => {
    const element = Object.assign(document.createElement("script"), { src: address });
    element.onload = resolve;
    element.onerror = () => reject(new Error(`${address} did not load`));
    document.head.append(element);
  });
}

export async function multiply(a, b) {
  await script("/peers/@tensorflow/tfjs/dist/tf.min.js");
  await script("/peers/@tensorflow/tfjs-backend-wasm/dist/tf-backend-wasm.min.js");
  const { tf } = globalThis;
  tf.wasm.setWasmPaths("/peers/@tensorflow/tfjs-backend-wasm/dist/");
  tf.wasm.setThreadsCount(1);
  if (!(await tf.setBackend("wasm"))) throw new Error("the wasm backend did not start");
  const matrix = (values) => tf.tensor(values, [4, 4]);
  return { product: await tf.matMul(matrix(a), matrix(b)).data() };
}
