// Files in: checked before they travel, a few at a time, and all watched by one stream while they are read.
import { get, post } from "./server.js";

const list = document.getElementById("tasks");
const drop = document.getElementById("drop");
const AT_A_TIME = 2;
const MOST_WATCHED = 100;  // by one stream
const watched = new Map();
let events = null;
let uploading = 0;

function line(name, item = document.createElement("li")) {
  const text = document.createElement("span");
  const bar = document.createElement("progress");
  const button = document.createElement("button");
  bar.max = 1;
  bar.value = 0;
  bar.setAttribute("aria-label", name);
  button.className = "quiet";
  button.hidden = true;
  item.replaceChildren(text, bar, button);
  list.append(item);
  const offer = (label, work) => {
    button.hidden = !label;
    button.textContent = label;
    button.onclick = work;
  };
  const say = (words, id) => {
    const what = document.createElement(id ? "a" : "span");
    what.textContent = name;
    if (id) what.href = `/documents/${id}`;
    text.replaceChildren(what, `: ${words}`);
  };
  return { item, bar, offer, say };
}

function ended(row, words, again, id) {
  row.say(words, id);
  row.bar.hidden = true;
  row.offer(again ? "Try again" : "", again);
}

function watch(id, row, again) {
  watched.set(id, { row, again });
  const cancel = () => post(`/tasks/${id}/cancel`).catch((problem) => row.say(problem.message));
  if ("cancel" in list.dataset) row.offer("Cancel", cancel);
}

function told(state) {
  const { row, again } = watched.get(state.id) ?? {};
  if (!row) return;
  row.bar.value = state.progress ?? 0;
  if (state.status === "queued" || state.status === "running") {
    row.say(state.status === "running" ? state.current_step ?? "reading" : "queued");
    return;
  }
  watched.delete(state.id);
  if ("alone" in list.dataset) {  // the page of this one file tells now what came of it; of a cancelled one nothing came
    if (state.status === "cancelled") location.assign("/documents");
    else location.reload();
    return;
  }
  if (state.status === "completed") {
    ended(row, "completed", null, state.result?.document_id);
  } else ended(row, state.message ?? state.status ?? "failed", again);
  if (!watched.size) listAnew();
}

async function listAnew() {
  let whole;
  try {
    whole = new DOMParser().parseFromString(await get(location.href), "text/html");
  } catch {
    return;  // the list stays as it is
  }
  document.getElementById("listing").replaceWith(whole.getElementById("listing"));
  if (uploading || watched.size) return;  // whose tasks are known by the rows of their files
  for (const item of whole.querySelectorAll("#tasks [data-task]")) {  // what had to wait for its turn to be listed
    watch(item.dataset.task, line(item.textContent));
  }
  follow();
}

function follow() {
  events?.close();
  if (!watched.size) return;
  events = new EventSource(`/tasks?ids=${[...watched.keys()].slice(0, MOST_WATCHED).join(",")}`);
  events.addEventListener("end", follow);  // with what had no place in this one
  events.onmessage = (event) => told(JSON.parse(event.data));
}

function takeFiles() {
  const most = Number(drop.dataset.most) * 1024 * 1024;
  const suffixes = new Set(drop.dataset.suffixes.split(" "));
  const waiting = [];

  const upload = async (file, row) => {
    const again = () => { row.item.remove(); add(file); };
    row.say("uploading");
    try {
      const said = JSON.parse(await post("/documents", file, { "x-filename": encodeURIComponent(file.name) }));
      watch(said.task_id, row, again);
      follow();
    } catch (problem) {
      ended(row, problem.message, again);
    }
  };

  const next = async () => {
    if (uploading >= AT_A_TIME || !waiting.length) return;
    uploading += 1;
    await upload(...waiting.shift());
    uploading -= 1;
    next();
  };

  const problemOf = (file) => {
    const suffix = /(?<=.)\.[^.]+$/.exec(file.name)?.[0].toLowerCase() ?? "";
    if (!suffixes.has(suffix)) return `${suffix || "a file without a suffix"} is not a kind that can be read`;
    return file.size > most ? `larger than ${drop.dataset.most} MB` : "";
  };

  const add = (file) => {
    const row = line(file.name);
    const problem = problemOf(file);
    if (problem) {
      ended(row, problem);
      return;
    }
    row.say("waiting");
    waiting.push([file, row]);
    next();
  };

  const walk = async (entry) => {  // the files of a folder, whatever is inside
    if (entry.isFile) {
      entry.file(add);
      return;
    }
    const reader = entry.createReader();
    for (;;) {
      const entries = await new Promise((done, failed) => { reader.readEntries(done, failed); });
      if (!entries.length) return;
      for (const inner of entries) await walk(inner);
    }
  };

  for (const input of drop.querySelectorAll("input")) {
    input.addEventListener("change", () => { [...input.files].forEach(add); input.value = ""; });
  }
  drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
    if (entries.length) entries.forEach(walk);
    else [...event.dataTransfer.files].forEach(add);
  });
}

for (const item of list.querySelectorAll("[data-task]")) {  // what is being read since before
  watch(item.dataset.task, line(item.textContent, item));
}
follow();
if (drop) takeFiles();
