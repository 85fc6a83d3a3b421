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

  const watch = (id, row) => {
    const events = new EventSource(`/tasks?ids=${id}`);
    row.cancel.hidden = false;
    row.cancel.onclick = () => fetch(`/tasks/${id}/cancel`, { method: "POST", headers: { "x-csrf": csrf } });
    events.onmessage = (event) => {
      const state = JSON.parse(event.data);
      row.bar.value = state.status === "completed" ? 1 : state.progress ?? 0;
      const step = state.status === "running" ? state.current_step ?? "reading" : state.status;
      row.say(state.success === false ? state.message : step);
    };
    events.addEventListener("end", () => {
      events.close();
      row.cancel.hidden = true;
      if (row.bar.value === 1) row.bar.hidden = true;
    });
  };

  const add = async (file) => {
    const row = line(file.name);
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
    if (told.success && told.task_id) watch(told.task_id, row);
    else {
      row.say(told.message ?? "refused");
      row.bar.hidden = true;
    }
  };

  const addAll = (files) => { for (const file of files) add(file); };
  input.addEventListener("change", () => { addAll(input.files); input.value = ""; });
  drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    addAll(event.dataTransfer.files);
  });
}
