// Results while somebody types: a moment after the last key, and only the last question counts.
import { get } from "./server.js";

const form = document.getElementById("search");
const results = document.getElementById("results");
const PAUSE = 200;
let waiting;
let running;

async function ask() {
  running?.abort();
  const mine = running = new AbortController();
  const asked = new URLSearchParams(new FormData(form));
  results.setAttribute("aria-busy", "true");
  try {
    const found = await get(`/search/results?${asked}`, mine.signal);
    if (mine === running) {
      results.innerHTML = found;
      history.replaceState(null, "", `/search?${asked}`);
    }
  } catch (problem) {
    if (problem.name !== "AbortError") results.textContent = problem.message;
  } finally {
    if (mine === running) results.removeAttribute("aria-busy");
  }
}

form.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(ask, PAUSE);
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(waiting);
  ask();
});
