// Place popups below the button that opens them; without this script they stand in the middle of the page.
const GAP = 6;

export function placeBelow(popup, button) {
  const at = button.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = popup;
  const left = Math.max(GAP, Math.min(at.right - width, innerWidth - width - GAP));
  const fitsBelow = at.bottom + GAP + height <= innerHeight;
  const top = fitsBelow ? at.bottom + GAP : Math.max(GAP, at.top - GAP - height);
  popup.style.margin = "0";
  popup.style.left = `${left}px`;
  popup.style.top = `${top}px`;
}

for (const popup of document.querySelectorAll(".popup[popover]")) {
  popup.addEventListener("toggle", (event) => {
    const button = document.querySelector(`[popovertarget="${popup.id}"]`);
    if (event.newState === "open" && button?.offsetParent) placeBelow(popup, button);
  });
}
