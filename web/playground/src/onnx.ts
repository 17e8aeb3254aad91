/** ONNX files: opened or dropped, drawn, run on what a form says, and timed op by op. */

import type { ModelGraph, ModelInput, OnnxModel } from "polygrad";

import { button, element, html, make } from "./dom";
import { messageOf } from "./failures";
import { GraphView } from "./graph";
import { drawnModel, ONNX_KINDS, weightCount } from "./onnx_graph";
import { InputForm } from "./onnx_inputs";
import { outputElements, showTimes } from "./onnx_results";
import { session } from "./session";
import { countOf, timeOf } from "./timeline";

const EXAMPLE = "programs/data/digits.onnx";

/** A handwritten eight, of 0 (paper) to 16 (ink). */
const DIGIT = ` 0  0  9 14  8  1  0  0
 0  0 12 14 14 12  0  0
 0  0  9 10  0 15  4  0
 0  0  3 16 12 14  2  0
 0  0  4 16 16  2  0  0
 0  3 16  8 10 13  2  0
 0  1 15  1  3 16  8  0
 0  0 11 16 15 11  1  0`;

const TIMED_SECONDS = 0.2;

export function startOnnx(): void {
  const [panel, note, failure] = [html("onnx"), html("onnx-note"), html("onnx-failure")];
  const [found, outputs, times] = [html("onnx-found"), html("onnx-outputs"), html("onnx-times")];
  const [run, time, legend] = [button("onnx-run"), button("onnx-time"), html("onnx-legend")];
  const form = new InputForm(html("onnx-inputs"));
  const view = new GraphView();
  html("onnx-tools").append(view.tools);
  html("onnx-graph").append(view.element);
  for (const [kind, words] of ONNX_KINDS) legend.append(make("li", kind, words));
  let opened: { model: OnnxModel; graph: ModelGraph; about: string } | undefined;
  let asked = 0;

  const fail = (error: unknown): void => {
    note.textContent = "";
    failure.replaceChildren(make("div", "failure", messageOf(error)));
  };

  const draw = (timed?: Parameters<typeof drawnModel>[3]): void => {
    if (!opened) return;
    const { graph, model } = opened;
    const { graph: drawn, omitted } = drawnModel(graph, model.inputs, model.outputs, timed);
    html("onnx-omitted").textContent =
      omitted > 0 ? `The last ${omitted} nodes are not drawn: there are too many.` : "";
    view.show(drawn, { marked: new Set(), mark: "new", indices: true });
  };

  /** Say what a model is, draw it, and show its form. */
  const show = async (source: string | File, name: string, files: Record<string, File>): Promise<boolean> => {
    const turn = ++asked;
    failure.replaceChildren();
    note.textContent = `reading ${name}…`;
    run.disabled = time.disabled = true;
    try {
      const pg = await session();
      const model = await pg.load(typeof source === "string" ? new URL(source, document.baseURI) : source, {
        files,
      });
      const graph = await model.graph();
      if (turn !== asked) {
        model.close();
        return false;
      }
      opened?.model.close();
      const ops = Object.keys(model.ops).length;
      const about = `${name}: ${graph.nodes.length} nodes of ${ops} ops, ${countOf(weightCount(graph))} weights.`;
      opened = { model, graph, about };
      note.textContent = about;
      form.show(model.inputs, source === EXAMPLE ? { image: DIGIT } : {});
      outputs.replaceChildren(make("p", "muted", "Run the model to see them."));
      times.replaceChildren(make("p", "muted", "Not measured yet."));
      found.hidden = false;
      draw();
      return true;
    } catch (error) {
      if (turn === asked) fail(error);
      return false;
    } finally {
      if (turn === asked) run.disabled = time.disabled = false;
    }
  };

  /** Do something with the opened model on the form's inputs; nothing else is done meanwhile. */
  const withInputs = async (
    doing: string,
    work: (model: OnnxModel, inputs: Record<string, ModelInput>) => Promise<string>,
  ): Promise<void> => {
    if (!opened || run.disabled) return;
    const { model, about } = opened;
    run.disabled = time.disabled = true;
    failure.replaceChildren();
    note.textContent = `${about} ${doing}…`;
    try {
      const said = await work(model, await form.values());
      if (opened.model === model) note.textContent = `${about} ${said}`;
    } catch (error) {
      if (opened.model === model) fail(error);
    } finally {
      run.disabled = time.disabled = false;
    }
  };

  const runModel = (): Promise<void> =>
    withInputs("Running", async (model, inputs) => {
      const started = performance.now();
      const results = await model.run(inputs);
      const shown = await outputElements(results);
      if (opened?.model === model) outputs.replaceChildren(...shown);
      const pg = await session();
      pg.dispose(results);
      return `Ran in ${timeOf((performance.now() - started) / 1e3)}, with compiling.`;
    });

  const timeModel = (): Promise<void> =>
    withInputs("Compiling and timing each node", async (model, inputs) => {
      const measured = await model.profile(inputs, TIMED_SECONDS);
      if (opened?.model === model) {
        showTimes(times, measured);
        draw(measured);
      }
      return `Each node was timed ${measured.rounds} times.`;
    });

  const showExample = async (): Promise<void> => {
    if (!(await show(EXAMPLE, "digits.onnx", {}))) return;
    const example = opened;
    await runModel();
    if (opened === example) await timeModel(); // else somebody has opened a file meanwhile
  };

  /** Of several files one is the model; the others hold elements of its weights. */
  const open = (files: readonly File[]): void => {
    const model = files.find(({ name }) => name.endsWith(".onnx")) ?? files[0];
    if (model === undefined) return;
    void show(model, model.name, Object.fromEntries(files.map((file) => [file.name, file])));
  };

  const picker = element("onnx-file", HTMLInputElement);
  picker.addEventListener("change", () => {
    open(Array.from(picker.files ?? []));
    picker.value = "";
  });
  panel.addEventListener("dragover", (event) => {
    event.preventDefault();
    panel.classList.add("dropping");
  });
  panel.addEventListener("dragleave", (event) => {
    if (!panel.contains(event.relatedTarget as globalThis.Node | null)) panel.classList.remove("dropping");
  });
  panel.addEventListener("drop", (event) => {
    event.preventDefault();
    panel.classList.remove("dropping");
    open(Array.from(event.dataTransfer?.files ?? []));
  });
  element("onnx-form", HTMLFormElement).addEventListener("submit", (event) => {
    event.preventDefault();
    void runModel();
  });
  time.addEventListener("click", () => void timeModel());
  button("onnx-example").addEventListener("click", () => void showExample());
  void showExample();
}
