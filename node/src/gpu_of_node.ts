/** WebGPU in Node: the optional package `webgpu`. */

/** What the package gave: the process ends badly if this is collected. */
let gpu: GPU | undefined;

/** The package's entry to WebGPU; undefined where it is not installed. */
export async function gpuOfNode(): Promise<GPU | undefined> {
  if (gpu !== undefined) return gpu;
  try {
    const { create } = (await import("webgpu")) as { create: (flags: string[]) => GPU };
    return (gpu = create([]));
  } catch {
    return undefined;
  }
}
