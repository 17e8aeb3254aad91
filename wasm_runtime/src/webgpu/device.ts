/**
 * `WebGPUDevice`: a GPUDevice for tensor data and kernels in WGSL, wherever there is a `GPU` object.
 *
 * Buffers, pipelines and command lists are numbers that the caller chooses, so that no call but a question has an
 * answer, and a device in a worker has the same calls (`node/src/gpu.ts`). Calls are carried out in order. It knows
 * no Programs and no allocation.
 *
 * A list of steps is recorded anew for each run, because WebGPU's command buffers are used once; that is quick, as
 * bind groups are kept. While pipelines are being compiled, what is asked for waits for them in a queue: nobody has to
 * wait for anything but a read. What is wrong with a pipeline or a buffer, the next read tells.
 */

import { CompileError, DeviceError, InternalError, OutOfMemoryError } from "../errors";
import { BindGroups } from "./bind_groups";
import { readSteps, type Range, type Step } from "./steps";

/** A kernel: its entry point, its text, and how many storage buffers it has; a uniform buffer is behind them. */
export interface Source {
  readonly name: string;
  readonly text: string;
  readonly buffers: number;
}

/** What an adapter says of itself. `features`: those of WebGPU's optional ones that the device was opened with. */
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
  /** How many invocations all subgroups have, where kernels may exchange values in them; else 0. */
  readonly subgroup: number;
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

/** What lets the GPU's own clock be asked. */
const TIMESTAMPS = "timestamp-query";

/** What a device is opened with where the adapter has it. */
const FEATURES = ["shader-f16", "subgroups", TIMESTAMPS] as const;

/** From this size on it is asked for whether there was room: asking takes a round trip. */
const LARGE = 16 << 20;

// GPUBufferUsage, GPUMapMode and GPUShaderStage are globals that not all hosts have.
const [MAP_READ, COPY_SRC, COPY_DST, UNIFORM, STORAGE, QUERY_RESOLVE] = [0x1, 0x4, 0x8, 0x40, 0x80, 0x200];
const READ = 0x1;
const COMPUTE = 0x4;

/** What the GPU's clock is asked with, and where its two answers are. */
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
  const { subgroupMinSize: least, subgroupMaxSize: most } = info;
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
    subgroup: features.has("subgroups") && least === most ? least : 0,
  };
}

/** Note what the clock says between the passes before and those after, which a pass of nothing else asks. */
function stamp(encoder: GPUCommandEncoder, querySet: GPUQuerySet, beginningOfPassWriteIndex: number): void {
  encoder.beginComputePass({ timestampWrites: { querySet, beginningOfPassWriteIndex } }).end();
}

export class WebGPUDevice {
  /** Whether what it is asked is answered at once, and not by a promise. */
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
  /** What waits for pipelines, and how many compilations there are. */
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

  /** Open the best adapter that there is; undefined when there is none. */
  static async open(gpu: GPU | undefined, options: OpenOptions = {}): Promise<WebGPUDevice | undefined> {
    const adapter = await gpu?.requestAdapter({ powerPreference: "high-performance" });
    if (!adapter) return undefined;
    const requiredLimits = Object.fromEntries(LIMITS.map((name) => [name, adapter.limits[name]]));
    const requiredFeatures = FEATURES.filter((name) => adapter.features.has(name));
    const device = await adapter.requestDevice({ requiredLimits, requiredFeatures });
    return new WebGPUDevice(adapter, device, options);
  }

  /** Why the device is lost; empty while it is not known to be. */
  get lost(): string {
    return this.#lost;
  }

  get counters(): Counters {
    return { ...this.#counters, bindGroups: this.#groups.made };
  }

  /** Do something, now or when the pipelines are there. */
  #enqueue(action: () => void): void {
    if (this.#compiling > 0) this.#queue.push(action);
    else action();
  }

  /** Throws what `open` promises of calls on a lost device. */
  #check(): void {
    if (this.#lost) throw this.#lostError();
  }

  #lostError(): DeviceError {
    return new DeviceError(
      `device WEBGPU: expected a device that is there, got one that was lost (${this.#lost}): make the tensors anew; ` +
        'Device["WEBGPU"] opens it again',
    );
  }

  /** Make a buffer. Settles when it is known whether there is room, for a large one; false: there is none. */
  createBuffer(number: number, nbytes: number): Promise<boolean> | undefined {
    this.#check();
    const large = nbytes >= LARGE;
    if (large) this.#device.pushErrorScope("out-of-memory");
    const usage = STORAGE | UNIFORM | COPY_SRC | COPY_DST;
    this.#buffers.set(number, this.#device.createBuffer({ size: nbytes, usage }));
    this.#counters.buffers++;
    return large ? this.#device.popErrorScope().then((error) => error === null) : undefined;
  }

  /** Let the next read tell that there was no room for a buffer; for those who cannot wait for `createBuffer`. */
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

  /** Bytes, when all that was submitted is done. Rejects with what has gone wrong since the last read. */
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
    const found = new Uint8Array(staging.getMappedRange(0, nbytes)).slice();
    staging.unmap();
    const free = this.#staging.get(size);
    if (size > LARGE) staging.destroy();
    else if (free === undefined) this.#staging.set(size, [staging]);
    else free.push(staging);
    this.#raise();
    return found;
  }

  async #map(staging: GPUBuffer, nbytes: number): Promise<void> {
    // The engine may otherwise look for finished work ten times a second only.
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

  /** Throws the first thing that has gone wrong; others came of it. */
  #raise(): void {
    const [first] = this.#errors.splice(0);
    if (first !== undefined) throw first;
  }

  /**
   * Make pipelines, numbered from `first` on, all at once. What is asked for meanwhile waits for them; which is not
   * accepted, the next read tells.
   */
  compile(first: number, sources: readonly Source[]): void {
    this.compiled(first, sources).catch((error: unknown) => {
      if (error instanceof Error) this.#errors.push(error);
    });
  }

  /** The same, with a promise, which rejects with CompileError; then the next read does not tell. */
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
    device.pushErrorScope("validation"); // of the module, which the pipeline tells
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
    this.#enqueue(() => this.#pipelines.delete(number));
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
    this.#enqueue(() => this.#commands.delete(number));
  }

  /** Carry out a list of steps in one submit. Without a table and grids they are those of its last run. */
  submit(number: number, table?: Uint32Array, grids?: Uint32Array): void {
    this.#check();
    this.#enqueue(() => {
      this.#submit(number, table, grids);
    });
  }

  /**
   * `submit`, and the seconds that the steps take: by the GPU's clock where the adapter has timestamp queries, else until
   * they are known here to be done. Rejects as `read` does.
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

  /** Undefined where a pipeline is missing: it was not accepted, which the next read tells. */
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
    const found = this.#buffers.get(number);
    if (found === undefined) {
      throw new DeviceError(
        `device WEBGPU: expected memory of this device, got ${number}, which was lost with another: make the tensors anew`,
      );
    }
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
