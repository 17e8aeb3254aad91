/** The devices that programs run on, and the choice of one. */

export const DEVICES = ["WASM", "WEBGPU"] as const;
export type DeviceName = (typeof DEVICES)[number];

/** Whether this page has a GPU. A browser may know WebGPU and have no adapter for it. */
async function hasGpu(): Promise<boolean> {
  const { gpu } = navigator as { gpu?: { requestAdapter(): Promise<unknown> } };
  try {
    return Boolean(await gpu?.requestAdapter());
  } catch {
    return false; // the GPU process is gone
  }
}

/** A choice of devices. WEBGPU can be chosen where the page has a GPU. */
export class DeviceChoice {
  readonly #select: HTMLSelectElement;

  /** `changed` is told of the visitor's choices. */
  constructor(select: HTMLSelectElement, changed: () => void) {
    this.#select = select;
    const gpu = new Option("WEBGPU", "WEBGPU");
    gpu.disabled = true;
    select.replaceChildren(new Option("WASM", "WASM", true, true), gpu);
    select.addEventListener("change", changed);
    void hasGpu().then((found) => {
      gpu.disabled = !found;
      gpu.text = found ? "WEBGPU" : "WEBGPU (no GPU)";
    });
  }

  get device(): DeviceName {
    return this.#select.value === "WEBGPU" ? "WEBGPU" : "WASM";
  }
}
