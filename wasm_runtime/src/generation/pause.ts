/** `Pause`: lets a page draw and handle events in between long computations. */

const LONGEST = 12; // milliseconds without a pause

export class Pause {
  #last = performance.now();

  /** A pause, if the last one is some time ago. */
  async take(): Promise<void> {
    if (performance.now() - this.#last < LONGEST) return;
    await nextTask();
    this.#last = performance.now();
  }
}

/** Settles in a task of its own; a timer would wait for some milliseconds. */
function nextTask(): Promise<void> {
  return new Promise((settle) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      settle();
    };
    port2.postMessage(null);
  });
}
