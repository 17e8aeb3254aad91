/** WebGPU in Node: the optional package `webgpu`. */

/** The package's GPU object. The process crashes if it is collected. */
let gpu: GPU | undefined;

/** The package's GPU object; undefined where the package is not installed. */
export async function gpuOfNode(): Promise<GPU | undefined> {
  if (gpu !== undefined) return gpu;
  try {
    const { create } = (await import("webgpu")) as { create: (flags: string[]) => GPU };
    return (gpu = create([]));
  } catch {
    return undefined;
  }
}
