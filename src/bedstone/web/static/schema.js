// Lists that filter themselves, links to share, and the parts of a page that ask the org.
import { get, post } from "./server.js";

const WAIT = 150;  // milliseconds after the last key
const RELOAD = 2000;  // milliseconds

if (document.querySelector("[data-reload]")) setTimeout(() => location.reload(), RELOAD);

for (const select of document.querySelectorAll("select[data-submits]")) {
  select.addEventListener("change", () => select.form.requestSubmit());
}

for (const button of document.querySelectorAll("[data-share]")) {
  button.dataset.copyText = location.href;
  button.hidden = false;
}

for (const part of document.querySelectorAll("[data-needs-script]")) part.hidden = false;

// What the org says comes later; without an answer, a quiet part stays as it is.
for (const part of document.querySelectorAll("[data-load]")) {
  post(part.dataset.load, new URLSearchParams(location.search))
    .then((html) => { part.innerHTML = html; })
    .catch((error) => {
      if ("quiet" in part.dataset) return;
      const said = document.createElement("p");
      said.className = "card-body soft";
      said.textContent = error.message;
      part.replaceChildren(said);
    });
}

// An org with thousands of objects offers those that fit what one types.
const names = document.querySelector("datalist[data-names]");
let waiting;
for (const input of names ? document.querySelectorAll("input[list=objects]") : []) {
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      names.innerHTML = await get(`${names.dataset.names}?text=${encodeURIComponent(input.value)}`);
    }, WAIT);
  });
}
