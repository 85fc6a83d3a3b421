// Suggestions at the caret: the textarea is a combobox while the list is open.
import { make, parse, say } from "./soql-dom.js";
import { get } from "./server.js";

const PAUSE_MS = 80;
const MAX_ADDRESS = 12_000;  // characters
const MAX_HEIGHT = 270;  // pixels
const TYPED = new Set(["insertText", "insertCompositionText"]);  // keyboards of phones compose every word

export function suggestAt(editor, at) {
  const { box } = editor;
  const list = make("ul", { id: "suggestions", className: "suggestions", hidden: true });
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Suggestions");
  box.parentElement.append(list);
  box.setAttribute("aria-autocomplete", "list");
  let found = { before: "", start: 0, rest: 0 };  // where it goes: after what, from where, and how far beyond the caret
  let active = -1;
  let isForced = false;  // asked for by a key: the first suggestion is chosen at once
  let waiting;
  let asking = new AbortController();

  const options = () => [...list.querySelectorAll("[role=option]")];

  function close() {
    clearTimeout(waiting);
    asking.abort();
    list.hidden = true;
    isForced = false;
    choose(-1);
    for (const name of ["role", "aria-expanded", "aria-controls", "aria-haspopup"]) box.removeAttribute(name);
  }

  function choose(place) {
    const all = options();
    all[active]?.setAttribute("aria-selected", "false");
    active = place;
    if (place < 0) {
      box.removeAttribute("aria-activedescendant");
      return;
    }
    all[place].setAttribute("aria-selected", "true");
    all[place].scrollIntoView({ block: "nearest" });
    box.setAttribute("aria-activedescendant", all[place].id);
  }

  async function ask() {
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    const text = box.value;
    const caret = box.selectionStart;
    const address = `${at}/soql/complete?${new URLSearchParams({ q: text, at: [...text.slice(0, caret)].length })}`;
    if (caret !== box.selectionEnd || address.length > MAX_ADDRESS) return close();
    try {
      const answer = parse(await get(address, signal)).firstElementChild;
      if (signal.aborted || box.value !== text || document.activeElement !== box) return;
      show(answer, text, caret);
    } catch {  // suggestions are a help: without them one types on
      if (!signal.aborted) close();
    }
  }

  function show(answer, text, caret) {
    if (!answer.querySelector("[role=option]")) return close();
    const characters = [...text];
    const units = (count) => characters.slice(0, count).join("").length;
    const start = units(answer.dataset.start);
    found = { before: text.slice(0, start), start, rest: units(answer.dataset.end) - caret };
    choose(-1);
    list.replaceChildren(...answer.children);
    list.hidden = false;
    list.scrollTop = 0;
    put();
    box.setAttribute("role", "combobox");
    box.setAttribute("aria-expanded", "true");
    box.setAttribute("aria-haspopup", "listbox");
    box.setAttribute("aria-controls", list.id);
    const count = options().length;
    say(`${count} suggestion${count === 1 ? "" : "s"}`);
    if (isForced) choose(0);
  }

  function put() {
    const frame = box.parentElement.getBoundingClientRect();
    const { left, top, bottom } = editor.place(found.start);
    const isAbove = frame.top + bottom + MAX_HEIGHT > innerHeight && frame.top + top > MAX_HEIGHT;
    list.style.left = `${Math.max(0, Math.min(left, frame.width - list.offsetWidth))}px`;
    list.style.top = `${isAbove ? top - list.offsetHeight - 2 : bottom + 2}px`;
  }

  function accept(option) {
    const { insert, back } = option.dataset;
    const { before, start, rest } = found;
    const end = box.selectionStart + rest;  // letters may have been typed since the list was asked for
    close();
    if (!box.value.startsWith(before) || end < start) return;
    const added = insert.endsWith(" ") && box.value[end] === " " ? insert.trimEnd() : insert;
    editor.replace(start, end, added, Number(back));
    if (Number(back) || /[.( ]$/.test(added)) ask();
  }

  function open() {
    isForced = true;
    ask();
  }

  box.addEventListener("input", (event) => {
    clearTimeout(waiting);
    choose(-1);
    const isTyped = TYPED.has(event.inputType) && /[\w.']$/.test(event.data ?? "");
    const isNarrowed = !list.hidden && event.inputType?.startsWith("deleteContent");
    if (isTyped || isNarrowed) waiting = setTimeout(ask, PAUSE_MS);
    else close();
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      open();
      return;
    }
    if (list.hidden || event.isComposing) return;
    const count = options().length;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) choose(active < 0 && step < 0 ? count - 1 : (active + step + count) % count);
    else if (event.key === "Escape") close();
    else if (["Enter", "Tab"].includes(event.key) && active >= 0 && !event.ctrlKey && !event.shiftKey) {
      accept(options()[active]);
    } else {
      if (["Enter", "Tab", "ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) close();
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  });
  box.addEventListener("blur", close);
  addEventListener("resize", close);
  list.addEventListener("pointerdown", (event) => event.preventDefault());  // the caret stays in the query
  list.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option) accept(option);
  });
  return { open, close };
}
