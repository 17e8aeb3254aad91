/** One GPUDevice for all models of a page or a process. */

import { WebGPUDevice, type OpenOptions } from "./device";

/** Where a device is opened. */
export interface Place {
  readonly gpu: GPU | undefined;
  readonly options?: OpenOptions;
}

/** A function that opens a device once, and another when that one is lost; undefined where there is none. */
export function sharedDevice(place: () => Promise<Place>): () => Promise<WebGPUDevice | undefined> {
  let opened: Promise<WebGPUDevice | undefined> | undefined;
  const open = async (): Promise<WebGPUDevice | undefined> => {
    const { gpu, options } = await place();
    return WebGPUDevice.open(gpu, options);
  };
  return async () => {
    const device = await (opened ??= open());
    if (device !== undefined && !device.lost) return device;
    return (opened = open());
  };
}
