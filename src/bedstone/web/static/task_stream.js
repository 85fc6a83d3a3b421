// Follow tasks over one event stream, and write how far they are into a row of a table or a notice.
import { post } from "./server.js";

const MAX_WATCHED = 100;  // tasks of one stream
const watched = new Map();
let events = null;

// Call `onState` with every new state of a task, until it has finished.
export function follow(id, onState) {
  watched.set(id, onState);
  listen();
}

export const isFollowing = () => watched.size > 0;

export const stop = (id) => post(`/tasks/${id}/cancel`);

let isPlanned = false;

function listen() {  // once for all tasks that are added at the same time
  if (isPlanned) return;
  isPlanned = true;
  queueMicrotask(() => { isPlanned = false; open(); });
}

function open() {
  events?.close();
  if (!watched.size) return;
  events = new EventSource(`/tasks?ids=${[...watched.keys()].slice(0, MAX_WATCHED).join(",")}`);
  events.addEventListener("end", open);  // continue with the tasks that did not fit into this stream
  events.onmessage = (event) => tell(JSON.parse(event.data));
}

function tell(state) {
  const onState = watched.get(state.id);
  if (!onState) return;
  if (!isActive(state)) watched.delete(state.id);
  onState(state);
}

export const isActive = (state) => state.status === "queued" || state.status === "running";

const KINDS = { running: "busy", completed: "good", failed: "bad" };

// Write a state into an element with a `.state`, a bar and a second line.
export function show(place, state) {
  const { kind, text, more } = describe(state);
  const line = place.querySelector(".state");
  const bar = place.querySelector("progress");
  line.className = `state ${kind}`;
  line.textContent = text;
  if (bar) {
    bar.hidden = state.status !== "running";
    bar.max = 1;
    bar.value = state.progress ?? 0;
  }
  const step = place.querySelector("[data-step]");
  if (step) step.textContent = more;
}

function describe(state) {
  const kind = KINDS[state.status] ?? "";
  if (state.status === "running") {
    const rest = state.remaining ? `, ${state.remaining}` : "";
    return { kind, text: `Reading, ${Math.floor((state.progress ?? 0) * 100)} %${rest}`, more: state.current_step ?? "" };
  }
  if (state.status === "queued") {
    const ahead = (state.position ?? 1) - 1;
    const others = ahead ? `, ${ahead} ${ahead === 1 ? "file" : "files"} ahead` : "";
    return { kind, text: `Waiting${others}`, more: state.message ?? "" };
  }
  if (state.status === "completed") return { kind, text: "Ready", more: "" };
  if (state.status === "cancelled") return { kind, text: "Stopped", more: "" };
  return { kind: "bad", text: `Failed: ${asClause(state.message ?? "the task is unknown")}`, more: state.next_step ?? "" };
}

// A sentence as it follows a colon.
export function asClause(sentence) {
  const text = sentence.replace(/\.$/, "");
  return /^\p{Lu}\p{Ll}/u.test(text) ? text[0].toLowerCase() + text.slice(1) : text;
}
