// Pan by dragging; zoom with Ctrl and the wheel, or with the keys + and -; reset with 0.
const LETTER_HEIGHT = 12;
const MIN_LETTER_HEIGHT = 8;

for (const frame of document.querySelectorAll("[data-diagram]")) {
  const svg = frame.querySelector("svg");
  const whole = svg.viewBox.baseVal;
  const home = { x: whole.x, y: whole.y, width: whole.width, height: whole.height };
  let from = null;

  const zoom = (factor, x = whole.x + whole.width / 2, y = whole.y + whole.height / 2) => {
    const width = Math.min(home.width * 2, Math.max(home.width / 12, whole.width * factor));
    const scale = width / whole.width;
    whole.x = x - (x - whole.x) * scale;
    whole.y = y - (y - whole.y) * scale;
    whole.width = width;
    whole.height *= scale;
  };
  const place = (event) => {
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    return [x, y];
  };

  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15, ...place(event));
  }, { passive: false });
  let moved = false;
  svg.addEventListener("pointerdown", (event) => { from = place(event); moved = false; });
  svg.addEventListener("dragstart", (event) => event.preventDefault());
  svg.addEventListener("click", (event) => { if (moved) event.preventDefault(); }, true);
  svg.addEventListener("keydown", (event) => {
    const work = { "+": () => zoom(1 / 1.3), "-": () => zoom(1.3), 0: () => Object.assign(whole, home) }[event.key];
    work?.();
  });
  svg.addEventListener("focusin", (event) => {  // bring the node that has the keyboard focus into view
    const box = event.target.getBBox?.();
    if (!box) return;
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    if (x < whole.x || y < whole.y || x > whole.x + whole.width || y > whole.y + whole.height) {
      whole.x = x - whole.width / 2;
      whole.y = y - whole.height / 2;
    }
  });
  svg.addEventListener("pointermove", (event) => {
    if (!from || event.buttons !== 1) return;
    const [x, y] = place(event);
    moved ||= Math.hypot(from[0] - x, from[1] - y) > whole.width / 200;
    whole.x += from[0] - x;
    whole.y += from[1] - y;
  });
  svg.addEventListener("pointerup", () => { from = null; });

  const letters = LETTER_HEIGHT * svg.clientWidth / whole.width;
  if (letters < MIN_LETTER_HEIGHT) zoom(letters / MIN_LETTER_HEIGHT);  // on a small screen, show the middle at a legible size

  const bar = document.createElement("p");
  bar.className = "zoom";
  for (const [label, work] of [["Zoom in", () => zoom(1 / 1.3)], ["Zoom out", () => zoom(1.3)], ["Reset", () => Object.assign(whole, home)]]) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    button.textContent = label;
    button.addEventListener("click", work);
    bar.append(button);
  }
  const hint = document.createElement("span");
  hint.className = "soft";
  hint.textContent = "Drag to move. Ctrl and the mouse wheel zoom.";
  bar.append(hint);
  frame.append(bar);
}
