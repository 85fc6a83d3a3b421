// A box that leaves only the rows of a table that have its text.
for (const box of document.querySelectorAll("[data-filter]")) {
  const rows = document.querySelectorAll(`#${box.dataset.filter} tbody tr`);
  box.addEventListener("input", () => {
    const wanted = box.value.toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
}
