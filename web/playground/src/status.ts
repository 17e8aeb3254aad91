/** The line in the header that says what runs the demonstrations, or what it is doing. */

import { html } from "./dom";

export type State = "busy" | "ready" | "failed";

export function showStatus(state: State, text: string): void {
  const status = html("status");
  status.dataset.state = state;
  status.textContent = text;
}
