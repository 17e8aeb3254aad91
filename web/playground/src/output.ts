/** What a program prints, plots and draws, below the editor. */

import { Chart } from "./chart";
import { html, make } from "./dom";
import type { Failure } from "./messages";

/** The output keeps this many characters; older ones are removed. More slow the page down. */
const MAX_OUTPUT = 200_000;

export class Output {
  readonly #text = html("output");
  readonly #figure = html("curve-figure");
  readonly #pictures = html("pictures");
  readonly #chart = new Chart(html("curve"), [{ label: "plot", color: "--accent-solid", scale: "value" }]);

  clear(): void {
    this.#text.replaceChildren();
    this.#chart.clear();
    this.#figure.hidden = true;
    this.#pictures.replaceChildren();
  }

  setBusy(isBusy: boolean): void {
    this.#text.setAttribute("aria-busy", String(isBusy));
  }

  /** Append text. A reader who is at the end stays there. */
  print(text: string, className = ""): void {
    const output = this.#text;
    const isAtEnd = output.scrollHeight - output.scrollTop - output.clientHeight < 40;
    output.append(make("span", className, text));
    while (output.textContent.length > MAX_OUTPUT) output.firstChild?.remove();
    if (isAtEnd) output.scrollTop = output.scrollHeight;
  }

  showFailure({ name, message, line, trace }: Failure): void {
    const where = line === undefined ? "" : ` (line ${line})`;
    const box = make("div", "failure", make("strong", "", `${name}${where}`), make("p", "", message));
    if (trace) box.append(make("details", "", make("summary", "", "traceback"), make("pre", "", trace)));
    this.#text.append(box);
    box.scrollIntoView({ block: "nearest" });
  }

  addPoint(value: number): void {
    this.#figure.hidden = false;
    this.#chart.add(this.#chart.length, value);
  }

  /** Show a picture that the program left in its folder. */
  showPicture(name: string, svg: string): void {
    const { documentElement } = new DOMParser().parseFromString(svg, "image/svg+xml");
    if (documentElement.localName !== "svg") return; // the file is damaged
    documentElement.setAttribute("role", "img");
    documentElement.setAttribute("aria-label", name);
    const caption = make("figcaption", "", make("code", "", name));
    const picture = document.importNode(documentElement, true);
    this.#pictures.append(make("figure", "card picture", caption, picture));
  }
}
