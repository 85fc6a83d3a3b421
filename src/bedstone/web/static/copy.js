// Buttons that copy what stands beside them.
for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copy);
    if (!navigator.clipboard) {  // only there over https and on this machine: select it for the keys
      getSelection().selectAllChildren(source);
      return;
    }
    await navigator.clipboard.writeText(source.textContent);
    const label = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = label; }, 1500);
  });
}
