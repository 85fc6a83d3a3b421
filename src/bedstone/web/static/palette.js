// The command palette: Ctrl-K opens it on every page.
import { get } from "./server.js";

const PAUSE_MS = 120;
const dialog = document.getElementById("palette");
const box = document.getElementById("jump");
const list = document.getElementById("jump-list");
let waiting;
let running;

const options = () => [...list.querySelectorAll("[role=option]")];
const chosen = () => list.querySelector("[aria-selected=true]");

function choose(option) {
  for (const other of options()) other.setAttribute("aria-selected", String(other === option));
  if (!option) {
    box.removeAttribute("aria-activedescendant");
    return;
  }
  box.setAttribute("aria-activedescendant", option.id);
  option.scrollIntoView({ block: "nearest" });
}

async function update() {
  running?.abort();
  const mine = running = new AbortController();
  try {
    const html = await get(`/palette?${new URLSearchParams({ q: box.value })}`, mine.signal);
    if (mine !== running) return;
    list.innerHTML = html;
    choose(options()[0]);
  } catch (problem) {
    if (problem.name !== "AbortError") list.textContent = problem.message;
  }
}

export function openPalette() {
  if (dialog.open) return;
  dialog.showModal();
  box.select();
  update();
}

function move(step) {
  const every = options();
  const at = every.indexOf(chosen()) + step;
  choose(every[(at + every.length) % every.length]);
}

function searchEverything() {
  location.assign(`/search?${new URLSearchParams({ q: box.value.replace(/^>/, "").trim() })}`);
}

box.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(update, PAUSE_MS);
});
box.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown") move(1);
  else if (event.key === "ArrowUp") move(-1);
  else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) searchEverything();
  else if (event.key === "Enter" && chosen()) chosen().click();
  else return;
  event.preventDefault();
});
list.addEventListener("pointermove", (event) => choose(event.target.closest("[role=option]") ?? chosen()));
list.addEventListener("click", () => dialog.close());  // a link to this very page leaves it open
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
