// What every page can do: change the theme, copy texts, jump to other pages.
const root = document.documentElement;

document.addEventListener("click", (event) => {
  const toggle = event.target.closest("[data-theme-toggle]");
  if (toggle) changeTheme();
  const button = event.target.closest("[data-copy], [data-copy-text], [data-share]");
  if (button) copy(button);
  if (event.target.closest("[data-palette]") && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    openPalette();
  }
});

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    openPalette();
  } else if (event.key === "/" && !isTyping(event.target)) {
    event.preventDefault();
    const box = document.querySelector("main .searchbox input[name=q]");
    if (box) box.select();
    else location.assign("/search");
  }
});

function isTyping(element) {
  return element.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName) || element.closest("dialog[open]");
}

async function openPalette() {
  if (!document.getElementById("palette")) return;  // the login page has none
  (await import("./palette.js")).openPalette();
}

function changeTheme() {
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  try {
    localStorage.setItem("theme", root.dataset.theme);
  } catch {
    // The browser stores nothing: the choice holds for this page.
  }
}

async function copy(button) {
  // Without an id it copies what stands before the button.
  const source = button.dataset.copy === "" ? button.previousElementSibling : document.getElementById(button.dataset.copy);
  if (!navigator.clipboard) {  // browsers offer it over https and on localhost only: select the text instead
    getSelection().selectAllChildren(source ?? button);
    return;
  }
  const share = button.dataset.share;
  const text = share !== undefined ? new URL(share, location.href).href : source?.textContent ?? button.dataset.copyText;
  await navigator.clipboard.writeText(text);
  toast(share !== undefined ? "Link copied" : "Copied");
}

// Say that something is done; `undo` is called if the user takes it back.
export function toast(text, undo) {
  document.querySelector(".toast:not(.in-place)")?.remove();
  const box = document.createElement("div");
  box.className = "toast";
  box.setAttribute("role", "status");
  const said = document.createElement("span");
  said.textContent = text;
  box.append(said);
  if (undo) {
    const button = document.createElement("button");
    button.className = "btn quiet tight";
    button.textContent = "Undo";
    button.addEventListener("click", () => { box.remove(); undo(); });
    box.append(button);
  }
  document.body.append(box);
  setTimeout(() => box.remove(), undo ? 8000 : 2000);
}
