// One document: page with the keyboard, frame the passage, copy with its source, follow the task that reads it.
import { toast } from "./app.js";
import "./menus.js";
import { get } from "./server.js";
import { follow, isActive, show, stop } from "./task_stream.js";

const viewer = document.querySelector(".viewer");
const reading = document.getElementById("reading");

document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (event.target.closest("input, textarea, select, pre, .scroll, [popover]")) return;
  const to = { ArrowLeft: "prev", ArrowRight: "next" }[event.key];
  if (to) viewer?.querySelector(`a[rel=${to}]`)?.click();
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-quote]");
  if (button) copyQuote(button);
  const zoom = event.target.closest("[data-zoom]");
  if (zoom) {
    event.preventDefault();
    const isLarge = viewer.querySelector(".well").classList.toggle("zoomed");
    zoom.textContent = isLarge ? "Fit" : "Zoom";
    if (isLarge) viewer.querySelector(".sheet > .paper").sizes = "100vw";  // a sharper picture
  }
});

async function copyQuote(button) {
  const parts = [...button.closest(".passage").querySelectorAll(".prose")];
  const text = parts.map((part) => part.innerText.trim()).join("\n\n");
  const quote = `“${text}”\n${button.dataset.quote}\n${button.dataset.link}`;
  if (!navigator.clipboard) {  // browsers offer it over https and on localhost only: select the text instead
    getSelection().selectAllChildren(parts[0]);
    return;
  }
  await navigator.clipboard.writeText(quote);
  toast("Copied with its source");
}

// Lay the drawing with the passage over the picture of the page.
async function drawMarks(place) {
  let drawing;
  try {
    drawing = new DOMParser().parseFromString(await get(place.dataset.marks), "image/svg+xml").documentElement;
  } catch {
    return;  // the text beside it is marked
  }
  if (drawing.nodeName !== "svg") return;
  if (drawing.querySelector(".page-passage")) {
    drawing.setAttribute("role", "img");
    drawing.setAttribute("aria-label", "The passage, framed");
  } else drawing.setAttribute("aria-hidden", "true");
  place.replaceChildren(document.importNode(drawing, true));
}

// Show the passage in the pane of the original, which scrolls on its own.
function scrollWithin(place) {
  const pane = place?.closest(".reading");
  if (pane) pane.scrollTop += place.getBoundingClientRect().top - pane.getBoundingClientRect().top - pane.clientHeight / 4;
}

// Show the current page in the strip without moving the page itself.
function showInStrip(strip) {
  const current = strip.querySelector("[aria-current]");
  strip.scrollTop = current.offsetTop - strip.clientHeight / 2;
  strip.scrollLeft = current.offsetLeft - strip.clientWidth / 2;
}

function followReading() {
  follow(reading.dataset.task, (state) => {
    show(reading, state);
    if (isActive(state)) return;
    if (state.status === "cancelled" && "alone" in reading.dataset) location.assign("/documents");
    else location.reload();
  });
  const button = reading.querySelector("[data-stop]");
  button?.addEventListener("click", () => {
    button.disabled = true;
    stop(reading.dataset.task).catch((problem) => toast(problem.message));
  });
}

if (reading?.dataset.task) followReading();
for (const place of document.querySelectorAll("[data-marks]")) drawMarks(place);
const strip = document.querySelector(".strip");
if (strip) showInStrip(strip);
for (const picture of document.querySelectorAll(".sheet > .paper")) {
  picture.addEventListener("error", () => { picture.closest(".sheet").classList.add("undrawn"); });
}
const isWide = matchMedia("(min-width: 56rem)").matches;  // otherwise the original comes first
if (isWide) {
  scrollWithin(document.getElementById("found"));
  if (!location.hash) document.querySelector(".passage.found")?.scrollIntoView({ block: "nearest" });
}
