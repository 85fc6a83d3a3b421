// The knowledge file: step through the matches without loading the page again, and copy the whole text.
import { toast } from "./app.js";

const count = document.getElementById("found-count");
const copy = document.getElementById("copy");

document.querySelector(".find")?.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-step]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const total = Number(count.dataset.total);
  const number = wrap(currentNumber() + Number(link.dataset.step), total);
  const mark = document.getElementById(`found-${number}`);
  if (!mark) return;  // on another part: the link leads there
  event.preventDefault();
  const address = new URL(link.href);
  address.searchParams.set("match", number);
  address.hash = mark.id;
  history.replaceState(null, "", address);
  document.querySelector("mark[aria-current]")?.removeAttribute("aria-current");
  mark.setAttribute("aria-current", "true");
  mark.scrollIntoView({ block: "center" });
  count.textContent = `${number.toLocaleString("en")} of ${total.toLocaleString("en")}`;
  for (const step of document.querySelectorAll("a[data-step]")) step.href = addressOf(step, wrap(number + Number(step.dataset.step), total));
});

copy?.addEventListener("click", async () => {
  const response = await fetch("/knowledge-file/original");
  if (!response.ok || !navigator.clipboard) return toast("Not copied. Download the original instead.");
  await navigator.clipboard.writeText(await response.text());
  toast("Copied");
});

// A link to a section that is on another part of a long text.
const wanted = decodeURIComponent(location.hash.slice(1));
if (wanted && document.querySelector(".pager") && !document.getElementById(wanted) && !new URLSearchParams(location.search).has("section")) {
  const address = new URL(location.href);
  address.searchParams.set("section", wanted);
  location.replace(address);
}

function currentNumber() {
  return Number(document.querySelector("mark[aria-current]")?.id.slice("found-".length) ?? 0);
}

function wrap(number, total) {
  return ((number - 1 + total) % total) + 1;
}

function addressOf(link, number) {
  const address = new URL(link.href);
  address.searchParams.set("match", number);
  address.hash = `found-${number}`;
  return address;
}
