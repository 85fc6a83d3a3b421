// The menu of a row in the list of documents: collections and removal, both of which can be taken back.
import { toast } from "./app.js";
import { placeBelow } from "./menus.js";
import { post } from "./server.js";

const UNDO_MILLISECONDS = 8000;

export function offerMenu(table, onRemoved) {
  const menu = document.getElementById("row-menu");
  let row = null;
  let opener = null;

  table.addEventListener("click", (event) => {
    const button = event.target.closest("[data-more]");
    if (!button) return;
    event.preventDefault();
    row = button.closest("tr");
    opener = button;
    menu.querySelector("h2").textContent = row.dataset.name;
    menu.querySelector("[data-open]").href = `/documents/${row.dataset.document}`;
    const original = menu.querySelector("[data-original]");
    original.href = `/documents/${row.dataset.document}/original`;
    original.hidden = row.classList.contains("failed");
    const fieldset = menu.querySelector("fieldset");
    if (fieldset) fieldset.hidden = row.classList.contains("failed");
    const names = row.dataset.collections.split(" ");
    for (const box of menu.querySelectorAll("input")) box.checked = names.includes(box.value);
    menu.showPopover();
    placeBelow(menu, button);
    menu.querySelector(".item").focus();
  });
  menu.addEventListener("toggle", (event) => {
    if (event.newState === "closed" && menu.contains(document.activeElement) && opener?.isConnected) opener.focus();
  });
  menu.addEventListener("change", (event) => {
    const { value, checked } = event.target;
    move(row, value, checked).catch((problem) => { event.target.checked = !checked; toast(problem.message); });
  });
  menu.querySelector("[data-remove]").addEventListener("click", () => { menu.hidePopover(); remove(row, onRemoved); });
  addEventListener("pagehide", () => removal?.commit());
}

async function move(row, name, isIn, isUndo = false) {
  const body = new URLSearchParams({ [isIn ? "into" : "out_of"]: name });
  const { collections } = JSON.parse(await post(`/documents/${row.dataset.document}/collections`, body));
  row.dataset.collections = collections.join(" ");
  row.querySelector("[data-names]").textContent = collections.filter((item) => item !== "default").join(", ") || "–";
  if (isUndo) return;
  toast(`${row.dataset.name} is ${isIn ? "in" : "no longer in"} ${name}`, () => move(row, name, !isIn, true));
}

let removal = null;  // what is removed for good when its time has passed

// Hide what is being removed in a list that is new.
export function hideRemoved() {
  if (removal) removal.show(false);
}

function remove({ dataset: { document: id, name } }, onRemoved) {
  removal?.commit();
  const timer = setTimeout(() => own.commit(), UNDO_MILLISECONDS);
  const own = {
    show(isVisible) {
      const row = document.querySelector(`#listed [data-document="${id}"]`);
      if (row) row.hidden = !isVisible;
    },
    end() {
      clearTimeout(timer);
      if (removal === own) removal = null;
    },
    commit() {
      own.end();
      post(`/documents/${id}/remove`, "", {}, { keepalive: true }).then(onRemoved, (problem) => {
        own.show(true);
        toast(problem.message);
      });
    },
  };
  removal = own;
  own.show(false);
  toast(`${name} is removed`, () => { own.end(); own.show(true); });
}
