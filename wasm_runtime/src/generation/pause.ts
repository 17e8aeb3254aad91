/** `pauseIfDue`: lets a page draw and handle events in between long computations. */

const LONGEST = 12; // milliseconds without a pause

let last = performance.now(); // of all computations: many short ones would hold a page up, too

/** A pause, if the last one is some time ago. */
export async function pauseIfDue(): Promise<void> {
  if (performance.now() - last < LONGEST) return;
  await nextTask();
  last = performance.now();
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
