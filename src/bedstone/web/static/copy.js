// Buttons that copy the text beside them.
for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copy);
    if (!navigator.clipboard) {  // browsers offer it over https and on localhost only: select the text instead
      getSelection().selectAllChildren(source);
      return;
    }
    await navigator.clipboard.writeText(source.textContent);
    const label = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = label; }, 1500);
  });
}
