// A documentation file: choosing another passage shows what an agent gets of it, without loading the page again.
const answer = document.getElementById("answer");
const outline = document.getElementById("outline");

outline.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-passage]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  history.replaceState(null, "", link.href);
  choose(link.dataset.passage);
  document.getElementById(link.dataset.passage).scrollIntoView();
});

// `#` beside a heading: the passage below it becomes the chosen one.
document.querySelector(".prose").addEventListener("click", (event) => {
  const section = event.target.closest("a.anchor")?.closest("section");
  if (section) choose(section.id);
});

answer.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-answer]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const given = new URL(link.href).searchParams;
  load(given.get("id"), given.get("context"));
});

function choose(id) {
  for (const link of outline.querySelectorAll("a")) {
    if (link.dataset.passage === id) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  for (const section of document.querySelectorAll(".prose > section")) section.classList.toggle("found", section.id === id);
  load(id);
}

async function load(id, context) {
  const given = new URLSearchParams({ id });
  if (context) given.set("context", context);
  const response = await fetch(`/docs/answer?${given}`, { headers: { "X-Part": "1" } });
  if (response.ok) answer.innerHTML = await response.text();
}
