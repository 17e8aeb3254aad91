/**
 * `WebGPUDevice`: a GPUDevice for tensor data and kernels in WGSL, on every host with a `GPU` object.
 *
 * The caller chooses the numbers of buffers, pipelines and command lists. So only reads have answers, and a device in a
 * worker has the same calls (`node/src/gpu.ts`). Calls are carried out in order. The device knows no Programs and does
 * not allocate.
 *
 * A list of steps is encoded again for each run, because a WebGPU command buffer can be submitted once. That is quick,
 * because bind groups are cached. Calls that come while pipelines compile wait in a queue, so a caller only waits for
 * reads. An error of a pipeline or a buffer is thrown by the next read.
 */

import { CompileError, DeviceError, InternalError, OutOfMemoryError } from "../errors";
import { BindGroups } from "./bind_groups";
import { readSteps, type Range, type Step } from "./steps";

/** A kernel: its entry point, its text, and its number of storage buffers, which a uniform buffer follows. */
export interface Source {
  readonly name: string;
  readonly text: string;
  readonly buffers: number;
}

/** The description of an adapter. `features`: the optional features of WebGPU that the device was opened with. */
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
  /** The size of all subgroups, where kernels may exchange values inside of them; else 0. */
  readonly subgroup: number;
}

/** How much was made and done so far. */
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

/** The feature that gives access to the GPU's clock. */
const TIMESTAMPS = "timestamp-query";

/** The features that a device is opened with where the adapter has them. */
const FEATURES = ["shader-f16", "subgroups", TIMESTAMPS] as const;

/** From this size on, the device asks whether there was room for a buffer, which takes a round trip. */
const LARGE = 16 << 20;

// GPUBufferUsage, GPUMapMode and GPUShaderStage are globals that not all hosts have.
const [MAP_READ, COPY_SRC, COPY_DST, UNIFORM, STORAGE, QUERY_RESOLVE] = [0x1, 0x4, 0x8, 0x40, 0x80, 0x200];
const READ = 0x1;
const COMPUTE = 0x4;

/** The queries of the GPU's clock, and the buffers of their two answers. */
interface Clock {
  readonly queries: GPUQuerySet;
  readonly answers: GPUBuffer;
}

interface Commands {
  readonly steps: readonly Step[];
  table: Uint32Array;
  grids: Uint32Array;
}

function describe({ info, limits, features }: GPUAdapter): AdapterDescription {
  const { subgroupMinSize: minSize, subgroupMaxSize: maxSize } = info;
  const name = [info.vendor, info.architecture, info.device, info.description].filter(Boolean).join(" ");
  return {
    name,
    software: info.isFallbackAdapter || /swiftshader|llvmpipe|lavapipe|software|basic render/i.test(name),
    features: FEATURES.filter((name) => features.has(name)),
    storageBuffers: limits.maxStorageBuffersPerShaderStage,
    bufferBytes: limits.maxBufferSize,
    bindingBytes: limits.maxStorageBufferBindingSize,
    workgroups: limits.maxComputeWorkgroupsPerDimension,
    invocations: limits.maxComputeInvocationsPerWorkgroup,
    sharedBytes: limits.maxComputeWorkgroupStorageSize,
    subgroup: features.has("subgroups") && minSize === maxSize ? minSize : 0,
  };
}

/** Record the time between two passes, by an empty pass. */
function stamp(encoder: GPUCommandEncoder, querySet: GPUQuerySet, beginningOfPassWriteIndex: number): void {
  encoder.beginComputePass({ timestampWrites: { querySet, beginningOfPassWriteIndex } }).end();
}

export class WebGPUDevice {
  /** Whether reads are answered at once, and not by a promise. */
  readonly synchronous: boolean = false;
  readonly adapter: AdapterDescription;
  /** Settles when the device is lost. */
  readonly whenLost: Promise<void>;
  readonly #device: GPUDevice;
  readonly #nudge: boolean;
  readonly #buffers = new Map<number, GPUBuffer>();
  readonly #pipelines = new Map<number, GPUComputePipeline>();
  readonly #layouts: { readonly group: GPUBindGroupLayout; readonly pipeline: GPUPipelineLayout }[] = [];
  readonly #commands = new Map<number, Commands>();
  /** Free staging buffers by size. */
  readonly #staging = new Map<number, GPUBuffer[]>();
  readonly #groups: BindGroups;
  readonly #errors: Error[] = [];
  /** The calls that wait for pipelines, and the number of compilations. */
  #queue: (() => void)[] = [];
  #clock: Clock | undefined;
  #compiling = 0;
  #compiled: Promise<void> = Promise.resolve();
  readonly #counters = { buffers: 0, pipelines: 0, submits: 0, dispatches: 0, reads: 0 };
  #lost = "";

  private constructor(adapter: GPUAdapter, device: GPUDevice, { nudge = false }: OpenOptions) {
    this.adapter = describe(adapter);
    this.#device = device;
    this.#nudge = nudge;
    this.#groups = new BindGroups((buffers, ranges) => this.#bind(buffers, ranges));
    device.addEventListener("uncapturederror", ({ error }) => {
      this.#errors.push(new InternalError(`WebGPU: ${error.message}`));
    });
    this.whenLost = device.lost.then(({ reason, message }) => {
      this.#lost = [reason, message].filter(Boolean).join(": ");
    });
  }

  /** Open the best adapter; undefined when there is none. */
  static async open(gpu: GPU | undefined, options: OpenOptions = {}): Promise<WebGPUDevice | undefined> {
    const adapter = await gpu?.requestAdapter({ powerPreference: "high-performance" });
    if (!adapter) return undefined;
    const requiredLimits = Object.fromEntries(LIMITS.map((name) => [name, adapter.limits[name]]));
    const requiredFeatures = FEATURES.filter((name) => adapter.features.has(name));
    const device = await adapter.requestDevice({ requiredLimits, requiredFeatures });
    return new WebGPUDevice(adapter, device, options);
  }

  /** Why the device was lost; empty as long as it works. */
  get lost(): string {
    return this.#lost;
  }

  get counters(): Counters {
    return { ...this.#counters, bindGroups: this.#groups.made };
  }

  /** Do something, now or when the pipelines are compiled. */
  #enqueue(action: () => void): void {
    if (this.#compiling > 0) this.#queue.push(action);
    else action();
  }

  /** Throws DeviceError for a lost device. */
  #check(): void {
    if (this.#lost) throw this.#lostError();
  }

  #lostError(): DeviceError {
    return new DeviceError(
      `device WEBGPU: expected a device that is there, got one that was lost (${this.#lost}): make the tensors anew; ` +
        'Device["WEBGPU"] opens it again',
    );
  }

  /** Make a buffer. For a large buffer there is a promise, which tells whether there was room. */
  createBuffer(number: number, nbytes: number): Promise<boolean> | undefined {
    this.#check();
    const large = nbytes >= LARGE;
    if (large) this.#device.pushErrorScope("out-of-memory");
    const usage = STORAGE | UNIFORM | COPY_SRC | COPY_DST;
    this.#buffers.set(number, this.#device.createBuffer({ size: nbytes, usage }));
    this.#counters.buffers++;
    return large ? this.#device.popErrorScope().then((error) => error === null) : undefined;
  }

  /** Make the next read throw when there was no room for a buffer; for callers who cannot await `createBuffer`. */
  async reportBuffer(nbytes: number, made: Promise<boolean>): Promise<void> {
    if (await made) return;
    this.#errors.push(new OutOfMemoryError(`allocate ${nbytes} bytes: no room on the GPU: free tensors`));
  }

  destroyBuffer(number: number): void {
    this.#enqueue(() => {
      this.#groups.drop(number);
      this.#buffers.get(number)?.destroy();
      this.#buffers.delete(number);
    });
  }

  write(number: number, offset: number, bytes: Uint8Array<ArrayBuffer>): void {
    this.#check();
    this.#enqueue(() => {
      this.#device.queue.writeBuffer(this.#buffer(number), offset, bytes);
    });
  }

  /** Read bytes after all submitted work. Rejects with the first error since the last read. */
  async read(number: number, offset: number, nbytes: number): Promise<Uint8Array> {
    this.#check();
    this.#counters.reads++;
    while (this.#compiling > 0) await this.#compiled;
    return this.#copyOut(this.#buffer(number), offset, nbytes);
  }

  async #copyOut(buffer: GPUBuffer, offset: number, nbytes: number): Promise<Uint8Array> {
    const size = 256 << Math.max(0, Math.ceil(Math.log2(nbytes / 256)));
    const staging =
      this.#staging.get(size)?.pop() ?? this.#device.createBuffer({ size, usage: MAP_READ | COPY_DST });
    const encoder = this.#device.createCommandEncoder();
    encoder.copyBufferToBuffer(buffer, offset, staging, 0, nbytes);
    this.#device.queue.submit([encoder.finish()]);
    await this.#map(staging, nbytes);
    const bytes = new Uint8Array(staging.getMappedRange(0, nbytes)).slice();
    staging.unmap();
    const free = this.#staging.get(size);
    if (size > LARGE) staging.destroy();
    else if (free === undefined) this.#staging.set(size, [staging]);
    else free.push(staging);
    this.#raise();
    return bytes;
  }

  async #map(staging: GPUBuffer, nbytes: number): Promise<void> {
    // Otherwise the engine may check for finished work only ten times a second.
    const timer = this.#nudge
      ? setInterval(() => {
          this.#device.queue.submit([]);
        }, 1)
      : undefined;
    try {
      await staging.mapAsync(READ, 0, nbytes);
    } catch (cause) {
      await new Promise((resolve) => setTimeout(resolve)); // `lost` settles, and errors arrive, at about this time
      this.#check();
      this.#raise();
      throw new InternalError(`WebGPU: read: ${String(cause)}`, { cause });
    } finally {
      clearInterval(timer);
    }
  }

  /** Throws the first error; later errors follow from it. */
  #raise(): void {
    const [first] = this.#errors.splice(0);
    if (first !== undefined) throw first;
  }

  /**
   * Make pipelines, numbered from `first` on, in parallel. Calls that come meanwhile wait for them. The next read
   * throws the error of a pipeline that is not accepted.
   */
  compile(first: number, sources: readonly Source[]): void {
    this.compiled(first, sources).catch((error: unknown) => {
      if (error instanceof Error) this.#errors.push(error);
    });
  }

  /** `compile` with a promise, which rejects with CompileError; the next read does not throw the error then. */
  async compiled(first: number, sources: readonly Source[]): Promise<void> {
    this.#check();
    this.#compiling++;
    const done = Promise.allSettled(sources.map((source, i) => this.#pipeline(first + i, source)));
    this.#compiled = Promise.all([this.#compiled, done]).then(() => undefined);
    const made = await done;
    if (--this.#compiling === 0) {
      for (const action of this.#queue.splice(0)) action();
    }
    for (const result of made) if (result.status === "rejected") throw result.reason;
  }

  async #pipeline(number: number, source: Source): Promise<void> {
    const device = this.#device;
    device.pushErrorScope("validation"); // of the module: the pipeline reports it
    const module = device.createShaderModule({ label: source.name, code: source.text });
    const quiet = device.popErrorScope();
    try {
      this.#pipelines.set(number, await device.createComputePipelineAsync(this.#descriptor(source, module)));
      this.#counters.pipelines++;
    } catch (cause) {
      if (this.#lost) throw this.#lostError();
      const { messages } = await module.getCompilationInfo();
      const wrong = messages.find(({ type }) => type === "error");
      const line = wrong && source.text.split("\n")[wrong.lineNum - 1]?.trim();
      const where = line ? `, line ${wrong.lineNum}: ${line}` : "";
      throw new CompileError(
        `kernel ${source.name}${where}: expected WGSL that the adapter takes, got: ${wrong?.message ?? String(cause)}`,
        { cause },
      );
    } finally {
      await quiet;
    }
  }

  #descriptor({ name, buffers }: Source, module: GPUShaderModule): GPUComputePipelineDescriptor {
    return { label: name, layout: this.#layout(buffers).pipeline, compute: { module, entryPoint: name } };
  }

  #layout(buffers: number): { readonly group: GPUBindGroupLayout; readonly pipeline: GPUPipelineLayout } {
    const cached = this.#layouts[buffers];
    if (cached !== undefined) return cached;
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
    this.#enqueue(() => this.#pipelines.delete(number));
  }

  /** Prepare a list of steps; see `readSteps` for the numbers. */
  prepare(number: number, steps: Uint32Array): void {
    this.#commands.set(number, {
      steps: readSteps(steps),
      table: new Uint32Array(),
      grids: new Uint32Array(),
    });
  }

  drop(number: number): void {
    this.#enqueue(() => this.#commands.delete(number));
  }

  /** Carry out a list of steps in one submit. Without `table` and `grids`, those of its last run are used. */
  submit(number: number, table?: Uint32Array, grids?: Uint32Array): void {
    this.#check();
    this.#enqueue(() => {
      this.#submit(number, table, grids);
    });
  }

  /**
   * `submit`, and the seconds that the steps take: by the GPU's clock where the adapter has timestamp queries, else by
   * this thread's clock. Rejects as `read` does.
   */
  async measure(number: number, table: Uint32Array, grids: Uint32Array): Promise<number> {
    this.#check();
    while (this.#compiling > 0) await this.#compiled;
    await this.#device.queue.onSubmittedWorkDone();
    const clock = this.#device.features.has(TIMESTAMPS) ? (this.#clock ??= this.#makeClock()) : undefined;
    const begin = performance.now();
    this.#submit(number, table, grids, clock?.queries);
    if (clock === undefined) {
      await this.#device.queue.onSubmittedWorkDone();
      this.#check();
      this.#raise();
      return (performance.now() - begin) / 1000;
    }
    const encoder = this.#device.createCommandEncoder();
    encoder.resolveQuerySet(clock.queries, 0, 2, clock.answers, 0);
    this.#device.queue.submit([encoder.finish()]);
    const [begun = 0n, done = 0n] = new BigUint64Array((await this.#copyOut(clock.answers, 0, 16)).buffer);
    return Number(done - begun) * 1e-9;
  }

  #makeClock(): Clock {
    const queries = this.#device.createQuerySet({ type: "timestamp", count: 2 });
    const answers = this.#device.createBuffer({ size: 16, usage: QUERY_RESOLVE | COPY_SRC });
    return { queries, answers };
  }

  #submit(number: number, table?: Uint32Array, grids?: Uint32Array, clock?: GPUQuerySet): void {
    const commands = this.#commands.get(number);
    if (commands === undefined) throw new InternalError(`no list of steps ${number}`);
    if (table !== undefined) {
      commands.table = table;
      for (const step of commands.steps) {
        if (step.kind === "dispatch") step.group = this.#groups.get(step.ranges, table);
      }
    }
    if (grids !== undefined) commands.grids = grids;
    const recorded = this.#record(commands, clock);
    if (recorded === undefined) return;
    this.#device.queue.submit([recorded]);
    this.#counters.submits++;
  }

  /** Encode a list of steps. Undefined where a pipeline was not accepted; the next read throws its error. */
  #record({ steps, table, grids }: Commands, clock?: GPUQuerySet): GPUCommandBuffer | undefined {
    const encoder = this.#device.createCommandEncoder();
    if (clock !== undefined) stamp(encoder, clock, 0);
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
      if (step.pipeline !== last) {
        const pipeline = (step.made ??= this.#pipelines.get(step.pipeline));
        if (pipeline === undefined) return undefined;
        pass.setPipeline(pipeline);
        last = step.pipeline;
      }
      pass.setBindGroup(0, step.group ?? null);
      pass.dispatchWorkgroups(grids[step.grid] ?? 0, grids[step.grid + 1] ?? 0, grids[step.grid + 2] ?? 0);
      this.#counters.dispatches++;
    }
    pass?.end();
    if (clock !== undefined) stamp(encoder, clock, 1);
    return encoder.finish();
  }

  #buffer(number: number): GPUBuffer {
    const buffer = this.#buffers.get(number);
    if (buffer === undefined) {
      throw new DeviceError(
        `device WEBGPU: expected memory of this device, got ${number}, which was lost with another: make the tensors anew`,
      );
    }
    return buffer;
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
