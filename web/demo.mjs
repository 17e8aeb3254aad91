/**
 * Trains `examples/digits.py` in a worker and draws what it reports.
 *
 * The script does not know that it is watched: the curve comes from its progress bar, the figures from `--json`.
 */

const FOLDER = "/home/pyodide/examples";
const FILES = ["digits.py", "data/digits.safetensors"];
const PROGRESS = /(\d+)\/(\d+) \[.*?(\d+) it\/s, loss ([\d.]+)\]/g;

const element = (id) => document.getElementById(id);

/** The losses so far, on a canvas. */
class Curve {
  constructor(canvas) {
    this.canvas = canvas;
    this.reset(1);
  }

  reset(total) {
    this.total = total;
    this.points = [];
    this.draw();
  }

  add(step, loss) {
    this.points.push([step, loss]);
    this.draw();
  }

  draw() {
    const { canvas, points, total } = this;
    const { clientWidth: width, clientHeight: height } = canvas;
    Object.assign(canvas, { width: width * devicePixelRatio, height: height * devicePixelRatio });
    const context = canvas.getContext("2d");
    context.scale(devicePixelRatio, devicePixelRatio);
    const style = getComputedStyle(canvas);
    const decades = [1, 0, -1, -2, -3];
    const y = (exponent) => ((1 - exponent) / 4) * (height - 16) + 8;
    context.strokeStyle = context.fillStyle = style.borderTopColor;
    for (const decade of decades) {
      context.beginPath();
      context.moveTo(0, y(decade));
      context.lineTo(width, y(decade));
      context.stroke();
      context.fillText(String(10 ** decade), 4, y(decade) + (decade === decades[0] ? 10 : -3));
    }
    context.strokeStyle = style.color;
    context.lineWidth = 2;
    context.beginPath();
    for (const [step, loss] of points) {
      context.lineTo((step / total) * width, y(Math.max(Math.log10(Math.max(loss, 1e-9)), -3)));
    }
    context.stroke();
  }
}

const curve = new Curve(element("curve"));
let errors = "";
let printed = "";

function watch(text) {
  errors = (errors + text).slice(-4000);
  for (const [, step, total, , loss] of text.matchAll(PROGRESS)) {
    if (Number(total) !== curve.total) curve.reset(Number(total));
    element("progress").value = Number(step) / Number(total);
    element("status").textContent = `step ${step} of ${total}`;
    element("loss").textContent = Number(loss).toFixed(3);
    curve.add(Number(step), Number(loss));
  }
}

async function train(python) {
  errors = printed = "";
  curve.reset(1);
  element("errors").hidden = true;
  element("train").disabled = true;
  element("status").textContent = "compiling…";
  try {
    const status = await python.runScript(`${FOLDER}/digits.py`, [
      "--json",
      "--epochs",
      element("epochs").value,
    ]);
    if (status !== 0) throw new Error(errors);
    const result = JSON.parse(printed.trim().split("\n").at(-1));
    element("accuracy").textContent = `${(100 * result.test_accuracy).toFixed(1)} %`;
    element("speed").textContent = result.steps_per_second.toFixed(0);
    element("loss").textContent = result.final_loss.toFixed(4);
    element("compile").textContent = `${result.compile_seconds.toFixed(2)} s`;
    element("status").textContent = "done";
  } catch (error) {
    show(error);
  }
  element("train").disabled = false;
}

function show(error) {
  element("status").textContent = "failed";
  element("errors").textContent = error.message;
  element("errors").hidden = false;
}

async function start() {
  const python = await window.polygrad.loadWorker({
    isatty: true,
    stdout: (text) => {
      printed += text;
    },
    stderr: watch,
  });
  for (const name of FILES) {
    const response = await fetch(`examples/${name}`);
    if (!response.ok) throw new Error(`examples/${name}: expected the file, got status ${response.status}`);
    await python.writeFile(`${FOLDER}/${name}`, new Uint8Array(await response.arrayBuffer()));
  }
  element("status").textContent = "ready";
  element("train").disabled = false;
  element("train").addEventListener("click", () => void train(python));
}

start().catch(show);
