// The query editor: a textarea over a coloured mirror of its text, which also knows where the caret is.
import { make } from "./soql-dom.js";

const MAX_COLOURED = 20_000;  // characters; a longer text stays plain, so that typing stays quick
const KEYWORDS = new Set(
  ("select from where and or not in like includes excludes order by group having limit offset asc desc nulls first " +
   "last using scope with data category typeof when then else end for view reference rollup cube").split(" "));
const VALUE = /^(true|false|null|today|yesterday|tomorrow|(last|next|this)_\w+|n_\w+_ago)$/i;
const TOKEN = /('(?:[^'\\]|\\.)*(?:'|$))|(--[^\n]*|\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|([A-Za-z][\w.]*)|(\d[\w:.+-]*)|[\s\S]/g;

export function openEditor(box) {
  const mirror = make("pre");
  mirror.setAttribute("aria-hidden", "true");
  box.before(mirror);
  let text = "";
  let marks = [];

  function draw() {
    mirror.replaceChildren(...drawLines(box.value, marks));
    text = box.value;
  }

  box.addEventListener("input", () => {
    marks = moveMarks(marks, text, box.value);
    draw();
  });
  draw();

  return {
    box,
    mark(found) {
      marks = found.filter((item) => item.end <= box.value.length);
      draw();
    },
    // Replace a stretch of the text, so that the browser can undo it.
    replace(start, end, added, back = 0) {
      box.focus();
      box.setSelectionRange(start, end);
      const done = added ? document.execCommand("insertText", false, added) : document.execCommand("delete");
      if (!done && (added || end > start)) {
        box.setRangeText(added, start, end, "end");
        box.dispatchEvent(new InputEvent("input"));
      }
      const caret = start + added.length - back;
      box.setSelectionRange(caret, caret);
    },
    select(start, end) {
      box.focus();
      box.setSelectionRange(start, end);
    },
    // Return where a position is drawn, relative to the editor.
    place(position) {
      const frame = box.parentElement.getBoundingClientRect();
      const range = findRange(mirror, text, position);
      const drawn = range.getBoundingClientRect();
      return { left: drawn.left - frame.left, top: drawn.top - frame.top, bottom: drawn.bottom - frame.top };
    },
  };
}

function drawLines(text, marks) {
  const lines = [make("span", { className: "line" })];
  for (const [start, end, kind] of cut(text, marks)) {
    const mark = marks.find((item) => item.start <= start && end <= item.end);
    text.slice(start, end).split("\n").forEach((part, number) => {
      if (number) lines.push(make("span", { className: "line" }));
      if (!part) return;
      let node = kind ? make("span", { className: kind }, part) : document.createTextNode(part);
      if (mark) node = make("mark", { className: mark.kind === "warn" ? "warn" : "" }, node);
      lines.at(-1).append(node);
    });
  }
  return lines;
}

// Return start, end and colour of each stretch; no stretch lies across the edge of a mark.
function* cut(text, marks) {
  const edges = [...new Set(marks.flatMap((item) => [item.start, item.end]))].sort((one, other) => one - other);
  for (const [start, end, kind] of tokens(text)) {
    let from = start;
    for (const edge of edges) {
      if (edge <= from || edge >= end) continue;
      yield [from, edge, kind];
      from = edge;
    }
    yield [from, end, kind];
  }
}

function* tokens(text) {
  if (text.length > MAX_COLOURED) {
    yield [0, text.length, ""];
    return;
  }
  let plain = 0;
  for (const found of text.matchAll(TOKEN)) {
    const [word, quoted, comment, name, number] = found;
    let kind = "";
    if (quoted) kind = "text";
    else if (comment) kind = "note";
    else if (number || VALUE.test(name)) kind = "value";
    else if (name && KEYWORDS.has(name.toLowerCase())) kind = "word";
    if (!kind) continue;
    if (found.index > plain) yield [plain, found.index, ""];
    plain = found.index + word.length;
    yield [found.index, plain, kind];
  }
  if (plain < text.length) yield [plain, text.length, ""];
}

// Keep marks at their words while one types elsewhere; a word that changed loses its mark until it is checked.
function moveMarks(marks, before, after) {
  let start = 0;
  while (start < before.length && before[start] === after[start]) start++;
  let end = before.length;
  const grown = after.length - before.length;
  while (end > start && end + grown > start && before[end - 1] === after[end + grown - 1]) end--;
  return marks
    .filter((item) => item.end < start || item.start > end)
    .map((item) => (item.end < start ? item : { ...item, start: item.start + grown, end: item.end + grown }));
}

function findRange(mirror, text, position) {
  const before = text.slice(0, position).split("\n");
  const line = mirror.children[before.length - 1];
  const range = document.createRange();
  range.selectNodeContents(line);
  let left = before.at(-1).length;
  const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (left <= node.length) {
      range.setStart(node, left);
      range.setEnd(node, left);
      break;
    }
    left -= node.length;
  }
  return range.getClientRects().length ? range : { getBoundingClientRect: () => line.getBoundingClientRect() };
}
