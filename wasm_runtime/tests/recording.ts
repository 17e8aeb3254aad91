/** Sessions without Python, whose operations are kept. */

import { Tensor } from "../src/api/generated/tensor";
import { Session } from "../src/api/session";
import type { Body, Operation, Plain, Question, Transport } from "../src/api/transport";

/** A transport that keeps operations, calls bodies at once as for a worker, and answers by `answer`. */
class RecordingTransport implements Transport {
  readonly synchronous = false;
  readonly sent: Operation[] = [];

  constructor(readonly answer: (question: Question) => unknown) {}

  send(operation: Operation): void {
    this.sent.push(operation);
  }

  call(name: string, result: number, handles: number, keywords: string, args: readonly Plain[]): void {
    this.send({ kind: "call", name, result, handles, keywords, args });
  }

  ask(question: Question): Promise<unknown> {
    return Promise.resolve(this.answer(question));
  }

  askSync(): never {
    throw new Error("nothing is expected to be read here");
  }

  body(run: () => string): Body {
    return { operations: [], result: run() };
  }

  close(): void {
    this.sent.length = 0;
  }
}

/** A session as with a worker, and what it has sent. `answer`: what Python answers. */
export function recordedSession(answer: (question: Question) => unknown = () => undefined): {
  session: Session;
  sent: readonly Operation[];
} {
  const transport = new RecordingTransport(answer);
  const session = new Session(transport, { device: "WASM", devices: ["WASM"] }, Tensor);
  return { session, sent: transport.sent };
}
