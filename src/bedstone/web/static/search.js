// Update the results while the user types: shortly after the last key, and for the last query only.
import { get } from "./server.js";

const form = document.getElementById("search");
const results = document.getElementById("results");
const PAUSE_MS = 200;
let waiting;
let running;

async function search() {
  running?.abort();
  const mine = running = new AbortController();
  const query = new URLSearchParams(new FormData(form));
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

form.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(search, PAUSE_MS);
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(waiting);
  search();
});
