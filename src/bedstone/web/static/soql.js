// Validate a query while the user types, and run it on demand.
import { post } from "./server.js";

const form = document.getElementById("soql");
const query = document.getElementById("query");
const check = document.getElementById("check");
const rows = document.getElementById("rows");
const at = form.dataset.at;
const PAUSE_MS = 300;
let waiting;
let latest = 0;

const body = (more = {}) => {
  const form = new FormData();
  form.set("query", query.value);
  for (const [name, value] of Object.entries(more)) form.set(name, value);
  return form;
};

async function validate() {
  const mine = ++latest;
  try {
    const html = await post(`${at}/soql/check`, body());
    if (mine === latest) check.innerHTML = html;
  } catch (problem) {
    if (mine === latest) check.textContent = problem.message;
  }
}

let lastRun = "";  // the query whose rows are shown; the box may hold another one by now
let runs = 0;

async function run() {
  const mine = ++runs;
  lastRun = query.value;
  rows.setAttribute("aria-busy", "true");
  try {
    const html = await post(`${at}/soql/run`, body());
    if (mine !== runs) return;
    rows.innerHTML = html;
    history.replaceState(null, "", `?${new URLSearchParams({ q: lastRun })}`);
  } catch (problem) {
    if (mine === runs) rows.textContent = problem.message;
  } finally {
    if (mine === runs) rows.removeAttribute("aria-busy");
  }
}

async function more(button) {
  const mine = runs;
  button.disabled = true;
  try {
    const html = await post(`${at}/soql/run`, body({ query: lastRun, cursor: button.dataset.cursor }));
    if (mine !== runs) return;
    button.parentElement.remove();
    rows.insertAdjacentHTML("beforeend", html);
    rows.lastElementChild.focus();
  } catch (problem) {
    button.disabled = false;
    button.textContent = `${problem.message} Retry`;
  }
}

query.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(validate, PAUSE_MS);
});
document.getElementById("run").addEventListener("click", () => run());
query.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run();
});
form.addEventListener("click", (event) => {
  const { line, column, use: source } = event.target.dataset ?? {};
  if (line) {  // select the word at that place; columns count characters, not UTF-16 units
    const lines = query.value.split("\n");
    const before = lines.slice(0, line - 1).reduce((length, item) => length + item.length + 1, 0);
    const start = before + [...lines[line - 1]].slice(0, column - 1).join("").length;
    const word = /^\w+/.exec(query.value.slice(start))?.[0].length ?? 1;
    query.focus();
    query.setSelectionRange(start, start + word);
  }
  if (!source) return;
  query.value = document.getElementById(source).textContent;
  validate();
});
rows.addEventListener("click", (event) => {
  if (event.target.dataset?.cursor) more(event.target);
});
validate();
