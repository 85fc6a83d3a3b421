// Upload files, a few at a time, and follow their tasks over one event stream.
import { get, post } from "./server.js";

const list = document.getElementById("tasks");
const drop = document.getElementById("drop");
const MAX_UPLOADS = 2;  // at a time
const MAX_WATCHED = 100;  // tasks of one stream
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
  const show = (status, id) => {
    const file = document.createElement(id ? "a" : "span");
    file.textContent = name;
    if (id) file.href = `/documents/${id}`;
    text.replaceChildren(file, `: ${status}`);
  };
  return { item, bar, offer, show };
}

function finish(row, text, retry, id) {
  row.show(text, id);
  row.bar.hidden = true;
  row.offer(retry ? "Retry" : "", retry);
}

function watch(id, row, retry) {
  watched.set(id, { row, retry });
  const cancel = () => post(`/tasks/${id}/cancel`).catch((problem) => row.show(problem.message));
  if ("cancel" in list.dataset) row.offer("Cancel", cancel);
}

function update(state) {
  const { row, retry } = watched.get(state.id) ?? {};
  if (!row) return;
  row.bar.value = state.progress ?? 0;
  if (state.status === "queued" || state.status === "running") {
    row.show(state.status === "running" ? state.current_step ?? "processing" : "queued");
    return;
  }
  watched.delete(state.id);
  if ("alone" in list.dataset) {  // the page of one file shows the outcome; a cancelled file has none
    if (state.status === "cancelled") location.assign("/documents");
    else location.reload();
    return;
  }
  if (state.status === "completed") {
    finish(row, "completed", null, state.result?.document_id);
  } else finish(row, state.message ?? state.status ?? "failed", retry);
  if (!watched.size) refreshList();
}

async function refreshList() {
  let page;
  try {
    page = new DOMParser().parseFromString(await get(location.href), "text/html");
  } catch {
    return;  // keep the list as it is
  }
  document.getElementById("listing").replaceWith(page.getElementById("listing"));
  if (uploading || watched.size) return;  // their tasks have rows already
  for (const item of page.querySelectorAll("#tasks [data-task]")) {  // tasks that did not fit into the first list
    watch(item.dataset.task, line(item.textContent));
  }
  follow();
}

function follow() {
  events?.close();
  if (!watched.size) return;
  events = new EventSource(`/tasks?ids=${[...watched.keys()].slice(0, MAX_WATCHED).join(",")}`);
  events.addEventListener("end", follow);  // continue with the tasks that did not fit into this stream
  events.onmessage = (event) => update(JSON.parse(event.data));
}

function acceptFiles() {
  const maxBytes = Number(drop.dataset.most) * 1024 * 1024;
  const suffixes = new Set(drop.dataset.suffixes.split(" "));
  const waiting = [];

  const upload = async (file, row) => {
    const retry = () => { row.item.remove(); add(file); };
    row.show("uploading");
    try {
      const task = JSON.parse(await post("/documents", file, { "x-filename": encodeURIComponent(file.name) }));
      watch(task.task_id, row, retry);
      follow();
    } catch (problem) {
      finish(row, problem.message, retry);
    }
  };

  const next = async () => {
    if (uploading >= MAX_UPLOADS || !waiting.length) return;
    uploading += 1;
    await upload(...waiting.shift());
    uploading -= 1;
    next();
  };

  const problemOf = (file) => {
    const suffix = /(?<=.)\.[^.]+$/.exec(file.name)?.[0].toLowerCase() ?? "";
    if (!suffixes.has(suffix)) return suffix ? `unsupported format ${suffix}` : "unsupported format: the name has no suffix";
    return file.size > maxBytes ? `larger than the limit of ${drop.dataset.most} MB` : "";
  };

  const add = (file) => {
    const row = line(file.name);
    const problem = problemOf(file);
    if (problem) {
      finish(row, problem);
      return;
    }
    row.show("waiting");
    waiting.push([file, row]);
    next();
  };

  const walk = async (entry) => {  // every file in a folder and below
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

for (const item of list.querySelectorAll("[data-task]")) {  // tasks that were active before this page was loaded
  watch(item.dataset.task, line(item.textContent, item));
}
follow();
if (drop) acceptFiles();
