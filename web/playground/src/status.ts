/** The line in the header that says what runs the demonstrations, or what it is doing. */

import { html } from "./dom";

function show(state: "busy" | "ready" | "failed", text: string): void {
  const status = html("status");
  status.dataset.state = state;
  status.textContent = text;
}

/** A session starts. */
export function showStarting(stage?: string, fraction = 0): void {
  show("busy", stage === undefined ? "starting" : `starting: ${stage} ${Math.round(fraction * 100)}%`);
}

/** A session has started. */
export function showStarted(device: string, threads: number): void {
  const count = `${threads} ${threads === 1 ? "thread" : "threads"}`;
  show("ready", device === "WASM" ? `${device} · ${count}` : device);
}

export function showFailed(text: string): void {
  show("failed", text);
}
