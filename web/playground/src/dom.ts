/** Small helpers for a page whose structure is in its HTML. */

/** The element with this id. Throws when the page has none, or one of another class. */
export function element<T extends Element>(id: string, type: abstract new (...args: never) => T): T {
  const match = document.getElementById(id);
  if (!(match instanceof type)) throw new Error(`internal: expected a ${type.name} with the id ${id}`);
  return match;
}

export const button = (id: string): HTMLButtonElement => element(id, HTMLButtonElement);
export const html = (id: string): HTMLElement => element(id, HTMLElement);

/** A new element with text in it. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className = "",
  ...content: (string | Node)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  made.className = className;
  made.append(...content);
  return made;
}

/** Resolves once the page has painted. */
export function nextFrame(): Promise<void> {
  return new Promise((resolve) => {
    requestAnimationFrame(() => {
      resolve();
    });
  });
}

/** Resolves after other tasks of the page. */
export function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 0);
  });
}

let groups = 0;

/** A group of radio buttons, in which arrow keys move. `changed` is called with the index of the chosen button. */
export class Choice {
  readonly element: HTMLFieldSetElement;
  readonly #inputs: HTMLInputElement[] = [];

  constructor(
    className: string,
    legend: string,
    labels: readonly (readonly (string | Node)[])[],
    changed: (chosen: number) => void,
  ) {
    const group = `choice-${groups++}`;
    this.element = make("fieldset", className, make("legend", "hidden-text", legend));
    labels.forEach((content, i) => {
      const input = make("input", "hidden-text");
      input.type = "radio";
      input.name = group;
      input.addEventListener("change", () => {
        changed(i);
      });
      this.#inputs.push(input);
      this.element.append(make("label", "", input, ...content));
    });
  }

  get chosen(): number {
    return this.#inputs.findIndex(({ checked }) => checked);
  }

  /** Choose without calling `changed`. */
  choose(number: number): void {
    const input = this.#inputs[number];
    if (input) input.checked = true;
  }
}
