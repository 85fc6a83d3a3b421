// A query is checked while somebody types, and run on demand.
import { post } from "./server.js";

const form = document.getElementById("soql");
const query = document.getElementById("query");
const check = document.getElementById("check");
const rows = document.getElementById("rows");
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
    const told = await post("/salesforce/soql/check", body());
    if (mine === latest) check.innerHTML = told;
  } catch (problem) {
    check.textContent = problem.message;
  }
}

let asked = "";  // the query that was run: its further rows are its own, whatever stands in the box by then

async function run(cursor) {
  rows.setAttribute("aria-busy", "true");
  if (!cursor) asked = query.value;
  try {
    const told = await post("/salesforce/soql/run", body(cursor ? { query: asked, cursor } : {}));
    if (cursor) rows.insertAdjacentHTML("beforeend", told);
    else rows.innerHTML = told;
  } catch (problem) {
    rows.textContent = problem.message;
  } finally {
    rows.removeAttribute("aria-busy");
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
  if (line) {  // to where the problem is, with its word chosen
    const before = query.value.split("\n").slice(0, line - 1).join("\n");
    const start = before.length + (line > 1 ? 1 : 0) + column - 1;
    const word = /^\w+/.exec(query.value.slice(start))?.[0].length ?? 1;
    query.focus();
    query.setSelectionRange(start, start + word);
  }
  if (!source) return;
  query.value = document.getElementById(source).textContent;
  validate();
});
rows.addEventListener("click", (event) => {
  const cursor = event.target.dataset?.cursor;
  if (!cursor) return;
  event.target.remove();
  run(cursor);
});
validate();
