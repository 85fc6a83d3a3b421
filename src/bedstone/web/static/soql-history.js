// Queries that were run, and queries that were saved: both are kept in this browser only.
import { toast } from "./app.js";
import { ago, icon, make } from "./soql-dom.js";

const MAX_ENTRIES = 50;
const MAX_CHARACTERS = 20_000;  // of a query that is kept
const MAX_NAME = 80;
const REFRESH_MS = 30_000;

// `open(query)` puts a query into the editor; each org has lists of its own.
export function openHistory(org, open) {
  const lists = { history: readList(org, "history"), saved: readList(org, "saved") };
  const byId = (id) => document.getElementById(id);

  function keep(kind) {
    if (!writeList(org, kind, lists[kind])) {
      toast("The browser's storage is full or off: this list is lost when you leave the page.");
    }
    draw();
  }

  function draw() {
    const names = new Map(lists.saved.map((entry) => [entry.query, entry.name]));
    byId("saved-list").replaceChildren(...lists.saved.map((entry) => row("saved", entry, entry.name)));
    byId("saved").hidden = !lists.saved.length && byId("save-form").hidden;
    byId("saved-count").textContent = lists.saved.length || "";
    byId("history-list").replaceChildren(
      ...lists.history.map((entry) => row("history", entry, names.get(entry.query))));
    byId("history-count").textContent = lists.history.length || "";
    byId("history-clear").hidden = !lists.history.length;
  }

  function row(kind, entry, name) {
    const short = shorten(entry.query);
    const link = make("a", { href: `?${new URLSearchParams({ q: entry.query })}`, title: entry.query });
    link.append(name || make("code", { textContent: short }));
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      open(entry.query);
    });
    const facts = kind === "history" ? describe(entry) : short;
    const time = make("time", {
      className: "small", dateTime: new Date(entry.at).toISOString(), title: new Date(entry.at).toLocaleString(),
      textContent: ago(entry.at),
    });
    const button = make("button", { className: "btn quiet tight only-icon", type: "button" }, icon("x"));
    button.setAttribute("aria-label", `Remove ${name || short.slice(0, 40)}`);
    button.addEventListener("click", () => remove(kind, entry));
    return make("li", {}, make("div", { className: "main" }, link, make("p", { textContent: facts })), time, button);
  }

  function remove(kind, entry) {
    const before = lists[kind];
    const place = before.indexOf(entry);
    lists[kind] = before.filter((item) => item !== entry);
    keep(kind);
    const buttons = byId(`${kind}-list`).querySelectorAll("button");
    (buttons[Math.min(place, buttons.length - 1)] ?? byId("soql")).focus();
    toast("Removed", () => { lists[kind] = before; keep(kind); });
  }

  function add(entry) {
    if (entry.query.length > MAX_CHARACTERS) return;
    const others = lists.history.filter((item) => item.query !== entry.query);
    lists.history = [{ ...entry, at: Date.now() }, ...others].slice(0, MAX_ENTRIES);
    keep("history");
  }

  function save(name, query) {
    const others = lists.saved.filter((item) => item.name !== name);
    if (query.length > MAX_CHARACTERS) toast("The query is too long to be saved.");
    else if (others.length >= MAX_ENTRIES) toast(`${MAX_ENTRIES} queries are saved. Remove one first.`);
    else {
      lists.saved = [...others, { name, query, at: Date.now() }].sort((one, other) => one.name.localeCompare(other.name));
      keep("saved");
      toast(`Saved as ${name}`);
    }
  }

  byId("history-clear").addEventListener("click", () => {
    const before = lists.history;
    lists.history = [];
    keep("history");
    byId("soql").focus();
    toast("History cleared", () => { lists.history = before; keep("history"); });
  });
  addEventListener("storage", (event) => {  // another tab changed a list
    const kind = ["history", "saved"].find((name) => event.key === keyOf(org, name));
    if (!kind) return;
    lists[kind] = readList(org, kind);
    draw();
  });
  setInterval(() => {  // only the texts: the keyboard may be at a button of the list
    for (const time of document.querySelectorAll(".workbench time")) {
      const age = ago(Date.parse(time.dateTime));
      const isRun = time.closest("#rows");
      time.textContent = isRun ? (age === "now" ? "just now" : `${age} ago`) : age;
    }
  }, REFRESH_MS);
  draw();
  return { add, save, draw };
}

// A query in one line; of many columns the first is enough to know it again.
function shorten(query) {
  const line = query.replace(/\s+/g, " ").trim();
  return line.replace(/^(select [^,(]{1,40},)[^(]{16,}?( from )/i, "$1 …$2").slice(0, 120);
}

function describe(entry) {
  const count = entry.rows.toLocaleString("en");
  const rows = entry.isCount ? `COUNT() is ${count}` : `${count} record${entry.rows === 1 ? "" : "s"}`;
  return `${rows}, ${entry.milliseconds.toLocaleString("en")} ms`;
}

const keyOf = (org, kind) => `bedstone.soql.${kind}.${org}`;

// What is stored may be missing, or written by something else: only what has the right shape is taken.
function readList(org, kind) {
  try {
    const entries = JSON.parse(localStorage.getItem(keyOf(org, kind)) ?? "[]");
    return entries.filter(kind === "saved" ? isSaved : isRun).slice(0, MAX_ENTRIES);
  } catch {
    return [];
  }
}

const isEntry = (entry) => typeof entry?.query === "string" && entry.query.length <= MAX_CHARACTERS && isTime(entry.at);
const isTime = (value) => Number.isFinite(value) && Math.abs(value) < 8.64e15;
const isRun = (entry) => isEntry(entry) && Number.isFinite(entry.rows) && Number.isFinite(entry.milliseconds);
const isSaved = (entry) => isEntry(entry) && typeof entry.name === "string" && entry.name.length <= MAX_NAME;

function writeList(org, kind, entries) {
  for (let kept = entries; ; kept = kept.slice(0, kept.length >> 1)) {
    try {
      localStorage.setItem(keyOf(org, kind), JSON.stringify(kept));
      return kept.length === entries.length || kind === "history";  // a shorter history will do
    } catch {
      if (!kept.length || kind === "saved") return false;
    }
  }
}
