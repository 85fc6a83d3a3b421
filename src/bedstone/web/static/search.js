// Search while the user types, and move through the results with the arrow keys.
import { get } from "./server.js";

const form = document.getElementById("search");
const box = document.getElementById("q");
const results = document.getElementById("results");
const PAUSE_MS = 250;
const PREVIEW_MS = 120;
let waiting;
let running;

function parameters() {
  return new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
}

async function search() {
  running?.abort();
  const mine = running = new AbortController();
  const query = parameters();
  results.setAttribute("aria-busy", "true");
  try {
    const html = await get(`/search/results?${query}`, mine.signal);
    if (mine === running) {
      results.innerHTML = html;
      history.replaceState(null, "", `/search?${query}`);
    }
  } catch (problem) {
    if (problem.name !== "AbortError") results.textContent = problem.message;
  } finally {
    if (mine === running) results.removeAttribute("aria-busy");
  }
}

const hits = () => [...results.querySelectorAll(".result")];
const chosenAt = () => hits().findIndex((hit) => hit.classList.contains("chosen"));

function choose(at) {
  const every = hits();
  if (!every.length) return;
  const next = every[Math.max(0, Math.min(at, every.length - 1))];
  for (const hit of every) hit.classList.toggle("chosen", hit === next);
  next.querySelector("h2 a").focus();
  next.scrollIntoView({ block: "nearest" });
  remember(next.dataset.at);
  clearTimeout(waiting);
  waiting = setTimeout(preview, PREVIEW_MS);
}

// Keep the choice in the address: it is the same after going back, after a reload, and for whom the link is sent to.
function remember(at) {
  const query = new URLSearchParams(location.search);
  query.set("at", at);
  history.replaceState(null, "", `/search?${query}`);
}

async function preview() {
  running?.abort();
  const mine = running = new AbortController();
  try {
    const html = await get(`/search/preview${location.search}`, mine.signal);
    if (mine === running) document.getElementById("preview").innerHTML = html;
  } catch (problem) {
    if (problem.name !== "AbortError") document.getElementById("preview").textContent = problem.message;
  }
}

form.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(search, PAUSE_MS);
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(waiting);
  search();
});
box.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" && hits().length) {
    event.preventDefault();
    choose(document.activeElement === box ? Math.max(0, chosenAt()) : chosenAt() + 1);
  }
});
results.addEventListener("keydown", (event) => {
  if (!event.target.closest("#hits")) return;
  if (event.key === "ArrowDown") choose(chosenAt() + 1);
  else if (event.key === "ArrowUp" && chosenAt() === 0) box.focus();
  else if (event.key === "ArrowUp") choose(chosenAt() - 1);
  else if (event.key === "Escape") box.focus();
  else return;
  event.preventDefault();
});
results.addEventListener("focusin", (event) => {  // with Tab, or a finger
  const hit = event.target.closest(".result");
  if (hit && !hit.classList.contains("chosen")) choose(hits().indexOf(hit));
});
