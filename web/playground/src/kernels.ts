/** The kernel inspector: what an expression becomes, kernel by kernel, as WebAssembly text, and how long each takes. */

import { button, element, html, make } from "./dom";
import { messageOf } from "./failures";
import inspector from "./kernels.py";
import { session } from "./session";

interface Launch {
  readonly name: string;
  readonly bytes: number;
  readonly buffers: number;
  readonly parallel: boolean;
  readonly microseconds: number;
  readonly text: string;
}

interface Inspected {
  readonly shape: readonly number[];
  readonly launches: readonly Launch[];
}

const EXPRESSIONS: Readonly<Record<string, string>> = {
  "matrix product": "a, b = Tensor.rand(256, 256), Tensor.rand(256, 256)\n(a @ b).relu()",
  softmax: "x = Tensor.rand(256, 1000)\nx.softmax(axis=1)",
  "layer normalisation": "x = Tensor.rand(64, 512)\nx.layernorm()",
  convolution:
    "image, weight = Tensor.rand(1, 8, 32, 32), Tensor.rand(16, 8, 3, 3)\nimage.conv2d(weight).relu()",
};

function timeOf(microseconds: number): string {
  return microseconds < 1000
    ? `${microseconds.toPrecision(3)} µs`
    : `${(microseconds / 1000).toPrecision(3)} ms`;
}

function show({ name, bytes, buffers, parallel, microseconds, text }: Launch, total: number): HTMLElement {
  const share = make("span", "share");
  share.style.width = `${(100 * microseconds) / total}%`;
  const facts = [`${buffers} buffers`, `${bytes} bytes`, parallel ? "divided between threads" : "one thread"];
  return make(
    "details",
    "kernel",
    make(
      "summary",
      "",
      make("code", "", name),
      make("span", "muted", facts.join(" · ")),
      make("strong", "", timeOf(microseconds)),
      share,
    ),
    make("pre", "wat", text),
  );
}

export function startKernels(): void {
  const [list, note, go] = [html("kernel-list"), html("kernel-note"), button("inspect")];
  const source = element("expression", HTMLTextAreaElement);
  const choice = element("expression-choice", HTMLSelectElement);
  for (const name of Object.keys(EXPRESSIONS)) choice.append(new Option(name, name));

  const inspect = async (): Promise<void> => {
    if (go.disabled) return;
    go.disabled = true;
    note.textContent = "compiling and timing…";
    list.replaceChildren();
    try {
      const pg = await session();
      const call = `${inspector}\ninspect(${JSON.stringify(source.value)})`;
      const { shape, launches } = JSON.parse(String(await pg.python(call))) as Inspected;
      const total = launches.reduce((sum, { microseconds }) => sum + microseconds, 0);
      const kernels = launches.length === 1 ? "1 kernel" : `${launches.length} kernels`;
      note.textContent = `${kernels}, ${timeOf(total)} together; a result of shape [${shape.join(", ")}]`;
      list.append(...launches.map((launch) => show(launch, total)));
      list.querySelector("details")?.setAttribute("open", "");
    } catch (error) {
      note.textContent = "";
      list.append(make("div", "failure", messageOf(error)));
    } finally {
      go.disabled = false;
    }
  };

  const choose = (): void => {
    source.value = EXPRESSIONS[choice.value] ?? "";
  };
  choice.addEventListener("change", () => {
    choose();
    void inspect();
  });
  source.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    void inspect();
  });
  go.addEventListener("click", () => void inspect());
  choose();
  void inspect();
}
