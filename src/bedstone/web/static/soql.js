// A query is checked while somebody types, and run on demand.
import { post } from "./server.js";

const form = document.getElementById("soql");
const query = document.getElementById("query");
const check = document.getElementById("check");
const rows = document.getElementById("rows");
const at = form.dataset.at;
const PAUSE = 300;
let waiting;
let latest = 0;

const body = (more = {}) => {
  const made = new FormData();
  made.set("query", query.value);
  for (const [name, value] of Object.entries(more)) made.set(name, value);
  return made;
};

async function validate() {
  const mine = ++latest;
  try {
    const told = await post(`${at}/soql/check`, body());
    if (mine === latest) check.innerHTML = told;
  } catch (problem) {
    if (mine === latest) check.textContent = problem.message;
  }
}

let asked = "";  // the query that was run: its further rows are its own, whatever stands in the box by then
let runs = 0;

async function run() {
  const mine = ++runs;
  asked = query.value;
  rows.setAttribute("aria-busy", "true");
  try {
    const told = await post(`${at}/soql/run`, body());
    if (mine !== runs) return;
    rows.innerHTML = told;
    history.replaceState(null, "", `?${new URLSearchParams({ q: asked })}`);
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
    const told = await post(`${at}/soql/run`, body({ query: asked, cursor: button.dataset.cursor }));
    if (mine !== runs) return;
    button.parentElement.remove();
    rows.insertAdjacentHTML("beforeend", told);
    rows.lastElementChild.focus();
  } catch (problem) {
    button.disabled = false;
    button.textContent = `${problem.message} Try again`;
  }
}

query.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(validate, PAUSE);
});
document.getElementById("run").addEventListener("click", () => run());
query.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run();
});
form.addEventListener("click", (event) => {
  const { line, column, use: source } = event.target.dataset ?? {};
  if (line) {  // to where the problem is, with its word chosen; columns count signs, not halves of them
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
