// The list of documents: add files and follow their tasks without leaving the page.
import { toast } from "./app.js";
import { hideRemoved, offerMenu } from "./document_menu.js";
import "./menus.js";
import { get, post } from "./server.js";
import { asClause, follow, isActive, isFollowing, show, stop } from "./task_stream.js";

const table = document.getElementById("table");
const arriving = document.getElementById("arriving");
const drop = document.getElementById("drop");
const narrow = document.getElementById("narrow");
const MAX_UPLOADS = 2;  // at a time
const COUNT_MILLISECONDS = 700;
const MAX_SAID = 3;  // files that are named when they are ready
const FORMATS = "Save it as PDF, Office, HTML, Markdown or text and add that.";
const finished = [];
let uploading = 0;

function say(text) {
  document.getElementById("said").textContent = text;
}

function watchRow(row) {
  const id = row.dataset.task;
  follow(id, (state) => {
    show(row, state);
    if (isActive(state)) return;
    finished.push(`${row.dataset.name} ${state.status === "completed" ? "is ready" : state.status}`);
    if (!isFollowing() && !uploading) refresh();
  });
  const button = row.querySelector("[data-stop]");
  button?.addEventListener("click", () => {
    button.disabled = true;
    stop(id).catch((problem) => toast(problem.message));
  });
}

// Replace parts of the page by what the server shows now; return whether that worked.
async function replaceParts(...ids) {
  try {
    const page = new DOMParser().parseFromString(await get(location.href), "text/html");
    for (const id of ids) document.getElementById(id).replaceWith(page.getElementById(id));
  } catch {
    return false;  // the page stays as it is
  }
  return true;
}

let counting = 0;

// Count again when files have arrived, once for all of them.
function count() {
  clearTimeout(counting);
  counting = setTimeout(() => replaceParts("facts", "collections"), COUNT_MILLISECONDS);
}

// Show the list as it is now; rows of this page that tell of a problem stay.
async function refresh() {
  clearTimeout(counting);
  const names = finished.splice(0);
  say(names.length > MAX_SAID ? `${names.length} files have been read` : names.join(", "));
  if (!await replaceParts("facts", "collections", "listed", "after")) return;
  for (const row of [...arriving.rows]) {
    const listed = document.querySelector(`#listed [data-document="${row.dataset.document}"]`);
    if (row.dataset.done !== undefined || (listed && !row.retry)) row.remove();
    else if (listed) listed.remove();  // this one can be sent again
  }
  hideRemoved();
  document.getElementById("listing").hidden = !table.querySelector("tbody tr");
  watchListed();
}

function watchListed() {
  for (const row of document.querySelectorAll("#listed [data-task]")) watchRow(row);
}

function acceptFiles() {
  const maxBytes = Number(drop.dataset.most) * 1024 * 1024;
  const suffixes = new Set(drop.dataset.suffixes.split(" "));
  const waiting = [];

  const makeRow = (file) => {
    const row = document.getElementById("arriving-row").content.cloneNode(true).querySelector("tr");
    row.dataset.name = file.name;
    row.querySelector("[data-filename]").textContent = file.name;
    row.querySelector("[data-size]").textContent = describeBytes(file.size);
    row.querySelector("progress").setAttribute("aria-label", file.name);
    arriving.append(row);
    document.getElementById("listing").hidden = false;
    document.querySelector("#after .empty")?.remove();
    return row;
  };

  const offer = (row, label, work) => {
    const button = row.querySelector("[data-act]");
    button.hidden = !label;
    button.textContent = label;
    button.setAttribute("aria-label", `${label} ${row.dataset.name}`);
    button.onclick = work;
  };

  const tell = (row, kind, text) => {
    const line = row.querySelector(".state");
    line.className = `state ${kind}`;
    line.textContent = text;
  };

  const refuse = (row, reason, retry, wayOut = "") => {
    row.className = "failed";
    row.retry = retry;
    tell(row, "bad", `Failed: ${asClause(reason)}`);
    row.querySelector("[data-step]").textContent = wayOut;
    offer(row, retry ? "Retry" : "Dismiss", retry ?? (() => row.remove()));
  };

  const watch = (id, row, retry) => {
    offer(row, "Stop", () => stop(id).catch((problem) => toast(problem.message)));
    follow(id, (state) => {
      show(row, state);
      row.dataset.document = state.result?.document_id ?? state.document ?? "";
      row.querySelector("a").href = `/documents/${row.dataset.document}`;
      if (isActive(state)) return;
      offer(row, "", null);
      if (state.status === "failed") {
        row.className = "failed";
        row.retry = retry;
        offer(row, "Retry", retry);
      } else {
        row.className = "";
        row.dataset.done = "";
        row.querySelector("[data-passages]").textContent = state.result?.chunks_created ?? "–";
      }
      finished.push(`${row.dataset.name} ${state.status === "completed" ? "is ready" : state.status}`);
      if (!isFollowing() && !uploading && !waiting.length) refresh();
    });
  };

  const upload = async (file, row) => {
    const retry = () => { row.remove(); add(file); };
    tell(row, "busy", "Sending");
    try {
      const headers = { "x-filename": encodeURIComponent(file.name), "x-collection": drop.dataset.collection };
      watch(JSON.parse(await post("/documents", file, headers)).task_id, row, retry);
      count();
    } catch (problem) {
      refuse(row, problem.message, retry);
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
    if (!suffixes.has(suffix)) return [suffix ? `unsupported format ${suffix}` : "the name has no suffix", FORMATS];
    return file.size > maxBytes ? [`larger than the limit of ${drop.dataset.most} MB`, "Split it and add the parts."] : null;
  };

  const add = (file) => {
    const row = makeRow(file);
    const problem = problemOf(file);
    if (problem) {
      refuse(row, problem[0], null, problem[1]);
      return;
    }
    tell(row, "", "Waiting");
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

  for (const input of drop.querySelectorAll("input[type=file]")) {
    input.addEventListener("change", () => { [...input.files].forEach(add); input.value = ""; });
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-choose]");
    if (button) document.getElementById(button.dataset.choose).click();
  });
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
  document.addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    drop.classList.add("over");
  });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) drop.classList.remove("over"); });
  document.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    drop.classList.remove("over");
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
    if (entries.length) entries.forEach(walk);
    else [...event.dataTransfer.files].forEach(add);
  });
}

function describeBytes(size) {
  let amount = size;
  for (const unit of ["B", "kB", "MB"]) {
    if (amount < 1000) return `${unit === "B" || amount >= 100 ? Math.round(amount) : amount.toFixed(1)} ${unit}`;
    amount /= 1000;
  }
  return `${amount.toFixed(1)} GB`;
}

narrow.addEventListener("change", (event) => { if (event.target.matches("#sort")) narrow.requestSubmit(); });
narrow.addEventListener("submit", () => {  // addresses without empty parts can be shared
  for (const field of narrow.querySelectorAll("input, select")) field.disabled = !field.value || field.value === "date_added";
});
addEventListener("pageshow", () => { for (const field of narrow.querySelectorAll(":disabled")) field.disabled = false; });
watchListed();
if (drop) {
  acceptFiles();
  offerMenu(table, refresh);
}
