/**
 * `WebGPUDevice`: a GPUDevice for tensor data and kernels in WGSL, wherever there is a `GPU` object.
 *
 * Buffers, pipelines and command lists are numbers that the caller chooses, so that no call but a question has an
 * answer, and a device in a worker has the same calls (`node/src/gpu.ts`). Calls are carried out in order. It knows
 * no Programs and no allocation.
 *
 * A list of steps is recorded anew for each run, because WebGPU's command buffers are used once; that is quick, as
 * bind groups are kept.
 */

import { BindGroups } from "./bind_groups";
import { readSteps, type Range, type Step } from "./steps";

/** A kernel: its entry point, its text, and how many storage buffers it has; a uniform buffer is behind them. */
export interface Source {
  readonly name: string;
  readonly text: string;
  readonly buffers: number;
}

/** A kernel that is not accepted: its place among those compiled, and where and why. `line` counts from 1; 0: unknown. */
export interface Rejection {
  readonly index: number;
  readonly line: number;
  readonly message: string;
}

/** What an adapter says of itself. */
export interface AdapterDescription {
  readonly name: string;
  readonly software: boolean;
  readonly features: readonly string[];
  readonly storageBuffers: number;
  readonly bufferBytes: number;
  readonly bindingBytes: number;
  readonly workgroups: number;
  readonly invocations: number;
  readonly sharedBytes: number;
}

/** What was made and done so far. */
export interface Counters {
  buffers: number;
  pipelines: number;
  bindGroups: number;
  submits: number;
  dispatches: number;
  reads: number;
}

export interface OpenOptions {
  /** Whether this engine looks for finished work only when new work comes (Firefox). */
  readonly nudge?: boolean;
}

const LIMITS = [
  "maxStorageBuffersPerShaderStage",
  "maxBufferSize",
  "maxStorageBufferBindingSize",
  "maxComputeWorkgroupsPerDimension",
  "maxComputeInvocationsPerWorkgroup",
  "maxComputeWorkgroupSizeX",
  "maxComputeWorkgroupSizeY",
  "maxComputeWorkgroupSizeZ",
  "maxComputeWorkgroupStorageSize",
] as const;

/** From this size on it is asked for whether there was room: asking takes a round trip. */
const LARGE = 16 << 20;

// GPUBufferUsage, GPUMapMode and GPUShaderStage are globals that not all hosts have.
const [MAP_READ, COPY_SRC, COPY_DST, UNIFORM, STORAGE] = [0x1, 0x4, 0x8, 0x40, 0x80];
const READ = 0x1;
const COMPUTE = 0x4;

interface Commands {
  readonly steps: readonly Step[];
  table: Uint32Array;
  grids: Uint32Array;
}

function describe(adapter: GPUAdapter): AdapterDescription {
  const { info, limits } = adapter;
  const name = [info.vendor, info.architecture, info.device, info.description].filter(Boolean).join(" ");
  return {
    name,
    software: info.isFallbackAdapter || /swiftshader|llvmpipe|lavapipe|software|basic render/i.test(name),
    features: [...adapter.features],
    storageBuffers: limits.maxStorageBuffersPerShaderStage,
    bufferBytes: limits.maxBufferSize,
    bindingBytes: limits.maxStorageBufferBindingSize,
    workgroups: limits.maxComputeWorkgroupsPerDimension,
    invocations: limits.maxComputeInvocationsPerWorkgroup,
    sharedBytes: limits.maxComputeWorkgroupStorageSize,
  };
}

export class WebGPUDevice {
  readonly adapter: AdapterDescription;
  readonly #device: GPUDevice;
  readonly #nudge: boolean;
  readonly #buffers = new Map<number, GPUBuffer>();
  readonly #pipelines = new Map<number, GPUComputePipeline>();
  readonly #layouts: { readonly group: GPUBindGroupLayout; readonly pipeline: GPUPipelineLayout }[] = [];
  readonly #commands = new Map<number, Commands>();
  /** Free staging buffers by size. */
  readonly #staging = new Map<number, GPUBuffer[]>();
  readonly #groups: BindGroups;
  readonly #errors: string[] = [];
  readonly #counters = { buffers: 0, pipelines: 0, submits: 0, dispatches: 0, reads: 0 };
  #lost = "";

  private constructor(adapter: GPUAdapter, device: GPUDevice, { nudge = false }: OpenOptions) {
    this.adapter = describe(adapter);
    this.#device = device;
    this.#nudge = nudge;
    this.#groups = new BindGroups((buffers, ranges) => this.#bind(buffers, ranges));
    device.addEventListener("uncapturederror", ({ error }) => {
      this.#errors.push(error.message);
    });
    void device.lost.then(({ reason, message }) => {
      this.#lost = [reason, message].filter(Boolean).join(": ");
    });
  }

  /** Open the best adapter that there is; undefined when there is none. */
  static async open(gpu: GPU | undefined, options: OpenOptions = {}): Promise<WebGPUDevice | undefined> {
    const adapter = await gpu?.requestAdapter({ powerPreference: "high-performance" });
    if (!adapter) return undefined;
    const requiredLimits = Object.fromEntries(LIMITS.map((name) => [name, adapter.limits[name]]));
    return new WebGPUDevice(adapter, await adapter.requestDevice({ requiredLimits }), options);
  }

  /** Why the device is lost; empty while it is not known to be. */
  get lost(): string {
    return this.#lost;
  }

  get counters(): Counters {
    return { ...this.#counters, bindGroups: this.#groups.made };
  }

  /** Make a buffer. What is wrong is told of a large one; of others by the next read. */
  createBuffer(number: number, nbytes: number): Promise<string> | undefined {
    const large = nbytes >= LARGE;
    if (large) this.#device.pushErrorScope("out-of-memory");
    const buffer = this.#device.createBuffer({
      size: nbytes,
      usage: STORAGE | UNIFORM | COPY_SRC | COPY_DST,
    });
    this.#buffers.set(number, buffer);
    this.#counters.buffers++;
    return large
      ? this.#device.popErrorScope().then((error) => (error === null ? "" : error.message || "no room"))
      : undefined;
  }

  destroyBuffer(number: number): void {
    this.#groups.drop(number);
    this.#buffers.get(number)?.destroy();
    this.#buffers.delete(number);
  }

  write(number: number, offset: number, bytes: Uint8Array<ArrayBuffer>): void {
    this.#device.queue.writeBuffer(this.#buffer(number), offset, bytes);
  }

  /** Bytes, when all that was submitted is done. Rejects with what has gone wrong since the last read. */
  async read(number: number, offset: number, nbytes: number): Promise<Uint8Array> {
    const size = 256 << Math.max(0, Math.ceil(Math.log2(nbytes / 256)));
    const staging =
      this.#staging.get(size)?.pop() ?? this.#device.createBuffer({ size, usage: MAP_READ | COPY_DST });
    const encoder = this.#device.createCommandEncoder();
    encoder.copyBufferToBuffer(this.#buffer(number), offset, staging, 0, nbytes);
    this.#device.queue.submit([encoder.finish()]);
    this.#counters.reads++;
    // The engine may otherwise look for finished work ten times a second only.
    const timer = this.#nudge
      ? setInterval(() => {
          this.#device.queue.submit([]);
        }, 1)
      : undefined;
    try {
      await staging.mapAsync(READ, 0, nbytes);
    } catch (error) {
      await Promise.resolve(); // `lost` settles at the same time
      throw this.#lost ? error : new Error(this.#takeErrors() || String(error), { cause: error });
    } finally {
      clearInterval(timer);
    }
    const found = new Uint8Array(staging.getMappedRange(0, nbytes)).slice();
    staging.unmap();
    const free = this.#staging.get(size);
    if (size > LARGE) staging.destroy();
    else if (free === undefined) this.#staging.set(size, [staging]);
    else free.push(staging);
    const wrong = this.#takeErrors();
    if (wrong) throw new Error(wrong);
    return found;
  }

  #takeErrors(): string {
    return this.#errors.splice(0).join("; ");
  }

  /** Pipelines numbered from `first` on, compiled together; which kernel is not accepted. */
  async compile(first: number, sources: readonly Source[]): Promise<Rejection | undefined> {
    const device = this.#device;
    const modules = this.#modules(sources);
    const made = await Promise.allSettled(
      modules.map(({ module }, i) => device.createComputePipelineAsync(this.#descriptor(sources[i], module))),
    );
    for (const [index, result] of made.entries()) {
      if (result.status === "fulfilled") {
        this.#pipelines.set(first + index, result.value);
        this.#counters.pipelines++;
        continue;
      }
      await modules[index]?.error;
      const info = await modules[index]?.module.getCompilationInfo();
      const wrong = info?.messages.find(({ type }) => type === "error");
      return { index, line: wrong?.lineNum ?? 0, message: wrong?.message ?? String(result.reason) };
    }
    await Promise.all(modules.map(({ error }) => error));
    return undefined;
  }

  /** The same where nobody can wait: the next read tells what is not accepted. */
  compileNow(first: number, sources: readonly Source[]): void {
    for (const [i, { module }] of this.#modules(sources).entries()) {
      const descriptor = this.#descriptor(sources[i], module);
      this.#pipelines.set(first + i, this.#device.createComputePipeline(descriptor));
      this.#counters.pipelines++;
    }
  }

  /** Shader modules; `error` settles when it is known whether they are accepted, which the pipeline tells. */
  #modules(sources: readonly Source[]): { module: GPUShaderModule; error: Promise<unknown> }[] {
    return sources.map(({ name, text }) => {
      this.#device.pushErrorScope("validation");
      const module = this.#device.createShaderModule({ label: name, code: text });
      return { module, error: this.#device.popErrorScope() };
    });
  }

  #descriptor(source: Source | undefined, module: GPUShaderModule): GPUComputePipelineDescriptor {
    const { name, buffers } = source ?? { name: "", buffers: 0 };
    return { label: name, layout: this.#layout(buffers).pipeline, compute: { module, entryPoint: name } };
  }

  #layout(buffers: number): { readonly group: GPUBindGroupLayout; readonly pipeline: GPUPipelineLayout } {
    const found = this.#layouts[buffers];
    if (found !== undefined) return found;
    const entries = Array.from({ length: buffers + 1 }, (_, binding) => ({
      binding,
      visibility: COMPUTE,
      buffer: { type: binding < buffers ? ("storage" as const) : ("uniform" as const) },
    }));
    const group = this.#device.createBindGroupLayout({ entries });
    const pipeline = this.#device.createPipelineLayout({ bindGroupLayouts: [group] });
    return (this.#layouts[buffers] = { group, pipeline });
  }

  dropPipeline(number: number): void {
    this.#pipelines.delete(number);
  }

  /** Make a list of steps ready; see `readSteps` for the numbers. */
  prepare(number: number, steps: Uint32Array): void {
    this.#commands.set(number, {
      steps: readSteps(steps),
      table: new Uint32Array(),
      grids: new Uint32Array(),
    });
  }

  drop(number: number): void {
    this.#commands.delete(number);
  }

  /** Carry out a list of steps in one submit. Without a table and grids they are those of its last run. */
  submit(number: number, table?: Uint32Array, grids?: Uint32Array): void {
    const commands = this.#commands.get(number);
    if (commands === undefined) throw new Error(`internal: no list of steps ${number}`);
    if (table !== undefined) {
      commands.table = table.slice();
      for (const step of commands.steps) {
        if (step.kind === "dispatch") step.group = this.#groups.get(step.ranges, table);
      }
    }
    if (grids !== undefined) commands.grids = grids.slice();
    this.#device.queue.submit([this.#record(commands)]);
    this.#counters.submits++;
  }

  #record({ steps, table, grids }: Commands): GPUCommandBuffer {
    const encoder = this.#device.createCommandEncoder();
    let pass: GPUComputePassEncoder | undefined;
    let last = 0;
    for (const step of steps) {
      if (step.kind === "copy") {
        pass?.end();
        pass = undefined;
        const { source, target } = step;
        const [from, to] = [this.#buffer(table[source.entry] ?? 0), this.#buffer(table[target.entry] ?? 0)];
        encoder.copyBufferToBuffer(from, source.offset, to, target.offset, source.nbytes);
        continue;
      }
      if (pass === undefined) {
        pass = encoder.beginComputePass();
        last = 0;
      }
      const pipeline = this.#pipelines.get(step.pipeline);
      if (pipeline === undefined) throw new Error(`internal: no pipeline ${step.pipeline}`);
      if (step.pipeline !== last) pass.setPipeline(pipeline);
      last = step.pipeline;
      pass.setBindGroup(0, step.group ?? null);
      pass.dispatchWorkgroups(grids[step.grid] ?? 0, grids[step.grid + 1] ?? 0, grids[step.grid + 2] ?? 0);
      this.#counters.dispatches++;
    }
    pass?.end();
    return encoder.finish();
  }

  #buffer(number: number): GPUBuffer {
    const found = this.#buffers.get(number);
    if (found === undefined) throw new Error(`internal: no buffer ${number}`);
    return found;
  }

  #bind(buffers: readonly number[], ranges: readonly Range[]): GPUBindGroup {
    const entries = ranges.map(({ offset, nbytes }, binding) => ({
      binding,
      resource: { buffer: this.#buffer(buffers[binding] ?? 0), offset, size: nbytes },
    }));
    return this.#device.createBindGroup({ layout: this.#layout(ranges.length - 1).group, entries });
  }

  close(): void {
    this.#device.destroy();
  }
}
