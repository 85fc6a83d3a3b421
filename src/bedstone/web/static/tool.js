// Call a tool without leaving the page, show one part of its answer at a time, filter the list of tools.
import { toast } from "./app.js";
import { post } from "./server.js";

const form = document.getElementById("call");
const answer = document.getElementById("answer");
const tabs = [...document.querySelectorAll(".answer .tabs a")];

if (form) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(event.submitter?.value === "curl");
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      if (!form.querySelector(".primary").disabled) form.requestSubmit();
    }
  });
  for (const tab of tabs) {
    tab.addEventListener("click", (event) => {
      event.preventDefault();
      show(tab.hash);
    });
  }
  show("#readable");
}

async function send(isCurl) {
  const data = new FormData(form);
  if (isCurl) data.append("as", "curl");
  answer.setAttribute("aria-busy", "true");
  try {
    answer.innerHTML = await post(form.action, data);
  } catch (problem) {
    answer.querySelector("#readable").textContent = problem.message;
  } finally {
    answer.removeAttribute("aria-busy");
  }
  markProblem(answer.querySelector("[data-problem]")?.dataset.problem);
  const isPlain = isCurl || answer.querySelector("[data-problem]");
  show(isPlain || chosen() === "#schema" ? "#readable" : chosen());
  if (isCurl) copyCommand();
}

function markProblem(name) {
  for (const field of form.elements) {
    if (field.name) field.toggleAttribute("aria-invalid", field.name === name);
    if (field.name === name) field.closest("details")?.setAttribute("open", "");
  }
  if (name) form.elements[name]?.focus();
}

async function copyCommand() {
  const command = document.getElementById("curl");
  if (!command || !navigator.clipboard) return;  // it is shown, with a button that selects it
  await navigator.clipboard.writeText(command.textContent);
  toast("Copied");
}

function chosen() {
  return tabs.find((tab) => tab.hasAttribute("aria-current")).hash;
}

function show(hash) {
  for (const tab of tabs) {
    if (tab.hash === hash) tab.setAttribute("aria-current", "true");
    else tab.removeAttribute("aria-current");
  }
  for (const part of document.querySelectorAll(".answer [data-tab]")) part.hidden = `#${part.id}` !== hash;
}

const filter = document.querySelector("[data-filter]");
const wereOpen = new Set(document.querySelectorAll("[data-group][open]"));
filter?.addEventListener("input", () => {
  const wanted = filter.value.trim().toLowerCase();
  for (const group of document.querySelectorAll("[data-group]")) {
    const items = [...group.querySelectorAll("[data-name]")];
    for (const item of items) item.hidden = !item.dataset.name.toLowerCase().includes(wanted);
    group.hidden = items.every((item) => item.hidden);
    if (group.localName === "details") group.open = wanted ? !group.hidden : wereOpen.has(group);
  }
});
