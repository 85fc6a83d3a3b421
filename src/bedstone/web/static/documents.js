// Files in: checked before they travel, and watched while they are read.
const drop = document.getElementById("drop");
const csrf = document.querySelector("meta[name=csrf]").content;

if (drop) {
  const input = document.getElementById("files");
  const list = document.getElementById("tasks");
  const most = Number(drop.dataset.most) * 1024 * 1024;

  const line = (name) => {
    const item = document.createElement("li");
    const text = document.createElement("span");
    const bar = document.createElement("progress");
    const cancel = document.createElement("button");
    text.textContent = `${name}: waiting`;
    bar.max = 1;
    bar.value = 0;
    bar.setAttribute("aria-label", name);
    cancel.textContent = "Cancel";
    cancel.className = "quiet";
    cancel.hidden = true;
    item.append(text, bar, cancel);
    list.append(item);
    return { say: (words) => { text.textContent = `${name}: ${words}`; }, bar, cancel };
  };

  const watch = (id, row, again) => {
    let last = {};
    const events = new EventSource(`/tasks?ids=${id}`);
    row.cancel.hidden = false;
    row.cancel.onclick = () => fetch(`/tasks/${id}/cancel`, { method: "POST", headers: { "x-csrf": csrf } });
    events.onmessage = (event) => {
      const state = last = JSON.parse(event.data);
      row.bar.value = state.status === "completed" ? 1 : state.progress ?? 0;
      const step = state.status === "running" ? state.current_step ?? "reading" : state.status;
      row.say(state.success === false ? state.message : step);
    };
    events.addEventListener("end", () => {
      events.close();
      row.cancel.hidden = true;
      row.bar.hidden = true;
      if (last.status !== "completed") again();
    });
  };

  const add = async (file) => {
    const row = line(file.name);
    const again = () => {
      row.cancel.hidden = false;
      row.cancel.textContent = "Try again";
      row.cancel.onclick = () => { row.cancel.closest("li").remove(); add(file); };
    };
    if (file.size > most) {
      row.say(`larger than ${drop.dataset.most} MB`);
      row.bar.hidden = true;
      return;
    }
    row.say("uploading");
    const headers = { "x-csrf": csrf, "x-filename": encodeURIComponent(file.name) };
    const answer = await fetch("/documents", { method: "POST", body: file, headers });
    const told = (answer.headers.get("content-type") ?? "").includes("json")
      ? await answer.json()
      : { success: false, message: await answer.text() };
    if (told.success && told.task_id) watch(told.task_id, row, again);
    else {
      row.say(told.message ?? "refused");
      row.bar.hidden = true;
      again();
    }
  };

  const addAll = (files) => { for (const file of files) add(file); };
  input.addEventListener("change", () => { addAll(input.files); input.value = ""; });
  drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  const walk = async (entry) => {  // the files of a folder, whatever is inside
    if (entry.isFile) {
      entry.file(add);
      return;
    }
    const reader = entry.createReader();
    for (;;) {
      const entries = await new Promise((done, failed) => { reader.readEntries(done, failed); });
      if (!entries.length) return;
      for (const inner of entries) await walk(inner);
    }
  };
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
    if (entries.length) entries.forEach(walk);
    else addAll(event.dataTransfer.files);
  });
}
