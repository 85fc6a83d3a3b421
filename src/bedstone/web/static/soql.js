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
  const told = await post("/salesforce/soql/check", body()).catch((problem) => problem.message);
  if (mine === latest) check.innerHTML = told;
}

async function run(more) {
  rows.setAttribute("aria-busy", "true");
  const told = await post("/salesforce/soql/run", body(more)).catch((problem) => problem.message);
  rows.removeAttribute("aria-busy");
  if (more) rows.insertAdjacentHTML("beforeend", told);
  else rows.innerHTML = told;
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
  const source = event.target.dataset?.use;
  if (!source) return;
  query.value = document.getElementById(source).textContent;
  validate();
});
rows.addEventListener("click", (event) => {
  const cursor = event.target.dataset?.cursor;
  if (!cursor) return;
  event.target.remove();
  run({ cursor });
});
validate();
