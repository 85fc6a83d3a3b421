// Small parts that the workbench's scripts share.
const SVG = "http://www.w3.org/2000/svg";
const status = document.createElement("p");
status.className = "hidden";
status.setAttribute("role", "status");
document.body.append(status);

// Tell people who do not see the page what changed on it.
export function say(text) {
  status.textContent = text;
}

export function parse(html) {
  const holder = document.createElement("template");
  holder.innerHTML = html;
  return holder.content;
}

export function make(tag, facts = {}, ...children) {
  const element = Object.assign(document.createElement(tag), facts);
  element.append(...children);
  return element;
}

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "icon small");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `/static/icons.svg#${name}`);
  svg.append(use);
  return svg;
}

// Many buttons become one stop of the Tab key; arrow keys go from one to the next.
export function rove(container, selector) {
  const items = () => [...container.querySelectorAll(selector)];
  items().forEach((item, place) => { item.tabIndex = place ? -1 : 0; });
  if (container.dataset.roves) return;
  container.dataset.roves = "1";
  container.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    const all = items();
    const here = all.indexOf(event.target);
    if (!step || here < 0) return;
    event.preventDefault();
    const next = all[Math.min(Math.max(here + step, 0), all.length - 1)];
    event.target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
}

export async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const box = make("textarea", { value: text, className: "hidden" });  // without https browsers offer this way only
  document.body.append(box);
  box.select();
  document.execCommand("copy");
  box.remove();
}

// Return an error in plain words; the browser's own are about its request.
export function explain(problem) {
  return problem instanceof TypeError ? "The server cannot be reached. Check that it is running." : problem.message;
}

export function ago(moment) {
  const minutes = Math.floor((Date.now() - moment) / 60_000);
  if (minutes < 1) return "now";
  if (minutes < 60) return `${minutes} min`;
  return minutes < 1440 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 1440)} d`;
}
