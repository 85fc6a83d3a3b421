// Keep the page as the server has it: often while something runs, now and then otherwise.
import { get, post } from "./server.js";

const place = document.getElementById("activity");
const stale = document.getElementById("stale");
const MAX_SECONDS = 30;
let timer = 0;
let failures = 0;

async function refresh() {
  clearTimeout(timer);
  if (document.hidden) return;  // the page is looked at again when it is shown
  try {
    const fresh = document.createElement("template");
    fresh.innerHTML = await get(`/activity/live${location.search}`);
    updateChildren(place, fresh.content);
    countInMenu(place.querySelector("[data-count]").dataset.count);
    failures = 0;
    stale.hidden = true;
  } catch (problem) {
    failures += 1;
    stale.textContent = problem instanceof TypeError ? "The server does not answer. This page tries again by itself." : problem.message;
    stale.hidden = false;
  }
  plan();
}

function countInMenu(text) {
  const entry = document.querySelector('.sidebar a[href="/activity"]');
  const count = entry.querySelector(".count") ?? entry.appendChild(document.createElement("span"));
  count.className = "count";
  count.textContent = text;
}

function plan() {
  const seconds = Number(place.querySelector("[data-seconds]").dataset.seconds) * 2 ** Math.min(failures, 5);
  timer = setTimeout(refresh, Math.min(seconds, MAX_SECONDS) * 1000);
}

// Make an element equal to another one, and leave what is equal alone: the focus stays where it is.
function update(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeName !== fresh.nodeName || keyOf(old) !== keyOf(fresh)) {
    old.replaceWith(fresh);
  } else if (old.nodeType !== Node.ELEMENT_NODE) {
    old.data = fresh.data;
  } else {
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    updateChildren(old, fresh);
  }
}

function updateChildren(old, fresh) {
  const known = new Map([...old.children].filter(keyOf).map((child) => [keyOf(child), child]));
  const children = [...fresh.childNodes];
  children.forEach((child, number) => {
    const same = known.get(keyOf(child));
    if (same && same !== old.childNodes[number]) old.insertBefore(same, old.childNodes[number] ?? null);
    const current = old.childNodes[number];
    if (current && (same || !keyOf(current))) update(current, child);
    else old.insertBefore(child, current ?? null);
  });
  while (old.childNodes.length > children.length) old.lastChild.remove();
}

function keyOf(node) {
  return node.dataset?.key;
}

// Buttons act without a reload, so that the place one reads at stays.
place.addEventListener("submit", async (event) => {
  event.preventDefault();
  event.submitter.disabled = true;
  try {
    await post(event.target.action, new FormData(event.target));
  } catch (problem) {
    stale.textContent = problem.message;
    stale.hidden = false;
    event.submitter.disabled = false;
    return;
  }
  refresh();
});

document.addEventListener("visibilitychange", refresh);
plan();
