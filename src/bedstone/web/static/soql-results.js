// The rows of a query: sort them, load more of them, copy them.
import { toast } from "./app.js";
import { copy, explain, parse, rove, say } from "./soql-dom.js";

const FORMULA = /^[=+\-@\t\r]/;  // a spreadsheet would run what follows
const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

// `load(cursor)` returns the HTML of the next rows.
export function openResults(container, load) {
  let rows = [];  // in the order of the org
  let order = { column: -1, step: 0 };

  const table = () => container.querySelector(".scroll.tall > table");
  const heads = () => [...table().tHead.rows[0].cells];

  function show(html) {
    container.innerHTML = html;
    upgrade();
  }

  function upgrade() {
    rows = [];
    order = { column: -1, step: 0 };
    if (!table()) return;
    rows = [...table().tBodies[0].rows];
    for (const head of heads()) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
    }
    rove(table(), "tbody .copy");
  }

  function sort(head) {
    const column = heads().indexOf(head);
    const step = order.column !== column ? 1 : { 1: -1, "-1": 0, 0: 1 }[order.step];
    order = { column, step };
    arrange();
    const name = head.textContent;
    say(step ? `Sorted by ${name}, ${step > 0 ? "ascending" : "descending"}` : "In the order of the org");
  }

  function arrange() {
    const { column, step } = order;
    heads().forEach((head, place) => {
      if (place === column && step) head.setAttribute("aria-sort", step > 0 ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
    const sorted = step ? [...rows].sort((one, other) => compare(one.cells[column], other.cells[column], step)) : rows;
    table().tBodies[0].append(...sorted);
    const note = container.querySelector("#sort-note");
    const isPart = step && container.querySelector("[data-cursor]");
    note.textContent = isPart
      ? `Sorted among the ${rows.length.toLocaleString("en")} rows that are loaded. To sort all of them, write ORDER BY.`
      : "";
  }

  async function more(button) {
    button.disabled = true;
    const at = table();
    try {
      const page = parse(await load(button.dataset.cursor));
      if (table() !== at) return;  // another query was run meanwhile
      const next = page.querySelector(".scroll.tall > table");
      if (!next) return fail(button, page.querySelector(".notice")?.textContent.trim() ?? "No more rows.");
      add(next);
      const pager = page.querySelector("[data-cursor]")?.closest(".pager");
      if (pager) button.closest(".pager").replaceWith(pager);
      else button.closest(".pager").remove();
      container.querySelector("#rows-shown").textContent = pager ? `${rows.length.toLocaleString("en")} loaded, ` : "";
      say(`${rows.length} rows loaded`);
      (pager?.querySelector("button") ?? container.querySelector("#rows-title")).focus();
    } catch (problem) {
      fail(button, explain(problem));
    }
  }

  function fail(button, message) {
    button.disabled = false;
    toast(message);
  }

  // Append the rows of a page; a column that only this page has is appended too.
  function add(next) {
    const names = heads().map((head) => head.textContent);
    const theirs = [...next.tHead.rows[0].cells].map((head) => head.textContent);
    for (const name of theirs.filter((item) => !names.includes(item))) {
      const head = document.createElement("th");
      head.textContent = name;
      table().tHead.rows[0].append(head);
      for (const row of rows) row.append(document.createElement("td"));
      names.push(name);
    }
    for (const row of [...next.tBodies[0].rows]) {
      const cells = [...row.cells];
      row.replaceChildren(...names.map((name) => cells[theirs.indexOf(name)] ?? document.createElement("td")));
      rows.push(row);
      for (const button of row.querySelectorAll(".copy")) button.tabIndex = -1;
    }
    arrange();
  }

  async function copyRows(kind) {
    const write = kind === "markdown" ? writeMarkdown : writeTsv;
    const shown = [...table().tBodies[0].rows];
    await copy(write(heads().map((head) => head.textContent), shown.map((row) => [...row.cells])));
    toast(`Copied ${shown.length.toLocaleString("en")} row${shown.length === 1 ? "" : "s"}`);
  }

  container.addEventListener("click", (event) => {
    const head = event.target.closest("th");
    const button = event.target.closest("button");
    if (head && button && head.closest("table") === table()) sort(head);
    else if (button?.dataset.cursor) more(button);
    else if (button?.dataset.copyRows) copyRows(button.dataset.copyRows);
  });
  upgrade();
  return { show };
}

function compare(one, other, step) {
  const [left, right] = [one, other].map((cell) => cell.dataset.value ?? textOf(cell));
  if (!left || !right) return left ? -1 : right ? 1 : 0;  // what is empty comes last
  const isNumber = one.dataset.value !== undefined && other.dataset.value !== undefined;
  return step * (isNumber ? Number(left) - Number(right) : collator.compare(left, right));
}

function textOf(cell) {
  if (cell.matches(".long")) return cell.querySelector("p").textContent;
  const inner = cell.querySelector("table");
  if (!inner) return cell.matches(".children") ? "" : cell.textContent;
  const lines = [...inner.tBodies[0].rows].map((row) => [...row.cells].map(textOf).filter(Boolean).join(", "));
  return `${cell.querySelector("summary").textContent}: ${lines.join("; ")}`;
}

function isPlainNumber(cell) {
  return cell.matches(".number");
}

function writeTsv(names, rows) {
  const field = (cell) => {
    if (isPlainNumber(cell)) return cell.dataset.value;
    const text = textOf(cell);
    const safe = FORMULA.test(text) ? `'${text}` : text;
    return /["\t\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return [names.join("\t"), ...rows.map((cells) => cells.map(field).join("\t"))].join("\n");
}

function writeMarkdown(names, rows) {
  const escape = (text) => text
    .replaceAll("&", "&amp;").replaceAll("<", "&lt;").replace(/[\\|`*[\]]/g, "\\$&").replace(/\s*\n\s*/g, " ");
  const line = (fields) => `| ${fields.join(" | ")} |`;
  const right = names.map((_, place) => rows.every((cells) => isPlainNumber(cells[place]) || !textOf(cells[place])));
  const field = (cell) => (isPlainNumber(cell) ? cell.dataset.value : escape(textOf(cell)));
  return [
    line(names.map(escape)),
    line(right.map((isRight) => (isRight ? "---:" : "---"))),
    ...rows.map((cells) => line(cells.map(field))),
  ].join("\n");
}
