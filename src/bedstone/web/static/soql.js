// The workbench: a query is checked while one types, fixed with a button, completed at the caret, and run on demand.
import { toast } from "./app.js";
import { post, get } from "./server.js";
import { copy, explain, make, parse, rove, say } from "./soql-dom.js";
import { suggestAt } from "./soql-complete.js";
import { openEditor } from "./soql-editor.js";
import { openHistory } from "./soql-history.js";
import { openResults } from "./soql-results.js";

const PAUSE_MS = 300;
const MAX_SHARED = 8_000;  // characters of an address that every browser and proxy takes

const byId = (id) => document.getElementById(id);
const { at, org } = document.querySelector(".workbench").dataset;
const form = byId("query");
const runButton = byId("run");
const editor = openEditor(byId("soql"));
const { box } = editor;
const suggestions = suggestAt(editor, at);
const results = openResults(byId("rows"), (cursor) => post(`${at}/soql/run`, fields({ query: lastRun, cursor })));
const history = openHistory(org, setQuery);
let lastRun = byId("rows").childElementCount ? box.value : "";  // whose rows are shown; the editor may differ by now
let runs = 0;
let checks = 0;
let checked = box.value;  // whose messages are shown
let waiting;

function fields(given) {
  const data = new FormData();
  for (const [name, value] of Object.entries(given)) data.set(name, value);
  return data;
}

// Check the query, and show its state, its messages and the fields of its object.

async function check() {
  clearTimeout(waiting);
  const mine = ++checks;
  const query = box.value;
  const object = byId("fields").querySelector("[data-object]").dataset.object;
  try {
    const page = parse(await post(`${at}/soql/check`, fields({ query, object })));
    if (mine !== checks) return;
    checked = query;
    for (const part of page.children) byId(part.dataset.part).replaceChildren(...part.childNodes);
    showCheck();
  } catch (problem) {
    if (mine === checks) byId("check-state").textContent = explain(problem);
  }
}

function showCheck() {
  const state = byId("check-state").querySelector(".state");
  const isBad = state?.dataset.kind === "bad";
  runButton.disabled = runButton.hasAttribute("data-without-org") || Boolean(state?.hasAttribute("data-blocked"));
  runButton.classList.toggle("primary", !isBad);
  if (!runButton.hasAttribute("data-without-org")) runButton.title = runButton.disabled ? "Fix the errors first" : "";
  box.setAttribute("aria-invalid", String(isBad));
  const found = [...byId("checks").querySelectorAll("li[data-start]")];
  editor.mark(found.map((item) => ({
    start: Number(item.dataset.start), end: Number(item.dataset.end), kind: item.classList.contains("warn") ? "warn" : "bad",
  })));
  rove(byId("field-list") ?? byId("fields"), ".pick button");
}

function setQuery(text) {
  editor.replace(0, box.value.length, text);
  return check();
}

box.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(check, PAUSE_MS);
  if (byId("rows-stale")) byId("rows-stale").hidden = box.value === lastRun;
});

form.addEventListener("click", (event) => {
  const target = event.target.closest("[data-from], [data-query]");
  if (!target) return;
  event.preventDefault();
  use(target);
});

// Fix something, or go to its place; if one typed since the last check, places are looked up again.
async function use(target) {
  const label = target.textContent;
  if (box.value !== checked) {
    await check();
    target = [...form.querySelectorAll("[data-from], [data-query]")].find((item) => item.textContent === label);
    if (!target) return;
  }
  const { from, to, text, query } = target.dataset;
  if (text === undefined && query === undefined) return editor.select(Number(from), Number(to));
  if (query !== undefined) await setQuery(query);
  else {
    editor.replace(Number(from), Number(to), text);
    await check();
  }
  (byId("checks").querySelector(".bad button") ?? box).focus();  // the keyboard goes on at the next one
}

// Run

async function run() {
  suggestions.close();
  if (box.value !== checked) await check();  // one types, and runs at once
  if (runButton.disabled) {
    say(runButton.title || "The query cannot run yet");
    return;
  }
  const mine = ++runs;
  const query = box.value;
  byId("rows").setAttribute("aria-busy", "true");
  say("Running");
  try {
    const html = await post(`${at}/soql/run`, fields({ query }));
    if (mine !== runs) return;
    lastRun = query;
    results.show(html);
    window.history.replaceState(null, "", `?${new URLSearchParams({ q: query })}`);
    finish(query);
  } catch (problem) {
    if (mine === runs) showProblem(explain(problem));
  } finally {
    if (mine === runs) byId("rows").removeAttribute("aria-busy");
  }
}

function showProblem(text) {
  const notice = make("div", { className: "notice bad" }, make("p", { textContent: text }));
  notice.setAttribute("role", "alert");
  byId("rows").replaceChildren(notice);
}

function finish(query) {
  const { total, milliseconds, count } = byId("rows").querySelector("section").dataset;
  say(byId("rows").querySelector("h2").textContent);
  if (total === undefined) return;
  history.add({ query, rows: Number(total), milliseconds: Number(milliseconds), isCount: count !== undefined });
  byId("rows-stale").hidden = box.value === query;
}

form.addEventListener("submit", (event) => {
  const isDownload = event.submitter?.formAction.endsWith(".csv");
  if (isDownload) return;
  event.preventDefault();
  if (event.submitter?.id === "format") layOut();
  else run();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  run();
});

// Format, share, save

async function layOut() {
  const query = box.value;
  try {
    const text = await post(`${at}/soql/format`, fields({ query }));
    if (box.value === query && text !== query) setQuery(text);
  } catch (problem) {
    toast(explain(problem));
  }
}

byId("share").addEventListener("click", async () => {
  const address = new URL(`?${new URLSearchParams({ q: box.value })}`, location.href);
  if (address.href.length > MAX_SHARED) return toast("The query is too long for a link. Copy its text instead.");
  window.history.replaceState(null, "", address);
  await copy(address.href);
  toast("Link copied");
});

function askName(isOpen) {
  byId("save-form").hidden = !isOpen;
  history.draw();
  if (!isOpen) return box.focus();
  const name = byId("save-name");
  name.value = byId("fields").querySelector("[data-object]").dataset.object;
  name.focus();
  name.select();
}

byId("save").addEventListener("click", () => askName(true));
byId("save-cancel").addEventListener("click", () => askName(false));
byId("save-form").addEventListener("keydown", (event) => {
  if (event.key === "Escape") askName(false);
});
byId("save-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const name = byId("save-name").value.trim();
  if (!name) return;
  history.save(name, box.value);
  askName(false);
});

// Fields of the object: a filter, and buttons that insert a name at the caret

const panel = byId("fields");
let filtering;
panel.addEventListener("input", () => {
  clearTimeout(filtering);
  filtering = setTimeout(filterFields, PAUSE_MS / 2);
});
panel.addEventListener("keydown", (event) => {
  if (event.target.id !== "field-filter" || !["ArrowDown", "Enter"].includes(event.key)) return;
  event.preventDefault();
  panel.querySelector(".pick button")?.focus();
});
panel.addEventListener("click", (event) => {
  const button = event.target.closest("[data-insert]");
  if (button) insertField(button);
});

async function filterFields() {
  const wanted = { object: panel.querySelector("[data-object]").dataset.object, filter: byId("field-filter").value };
  try {
    const html = await get(`${at}/soql/fields?${new URLSearchParams(wanted)}`);
    if (byId("field-filter")?.value !== wanted.filter) return;
    byId("field-list").innerHTML = html;
    rove(byId("field-list"), ".pick button");
  } catch (problem) {
    toast(explain(problem));
  }
}

function insertField(button) {
  const name = button.dataset.insert;
  const { selectionStart: start, selectionEnd: end, value } = box;
  const before = value.slice(0, start);
  const clause = [...before.matchAll(/\b(select|from|where|by|having|limit)\b/gi)].at(-1)?.[1];
  const isList = ["select", "by"].includes(clause?.toLowerCase());
  const needsComma = isList && /[\w)]\s*$/.test(before) && !/\b(select|by)\s*$/i.test(before);
  const after = value.slice(end).trimStart();
  const isBeforeName = isList && /^\w/.test(after) && !/^(from|limit|having|order|asc|desc)\b/i.test(after);
  const added = `${needsComma ? ", " : ""}${name}${isBeforeName && !name.endsWith(".") ? ", " : ""}`;
  const cut = needsComma ? before.trimEnd().length : start;
  const space = needsComma && cut < start ? before.slice(cut) : "";
  editor.replace(cut, end, added + space, space.length);
  if (name.endsWith(".")) suggestions.open();
  else {
    say(`${name} inserted`);
    button.focus();
  }
}

showCheck();
