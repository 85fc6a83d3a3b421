// Files in: checked before they travel, a few at a time, and all watched by one stream while they are read.
const drop = document.getElementById("drop");
const csrf = document.querySelector("meta[name=csrf]").content;
const AT_A_TIME = 2;

if (drop) {
  const input = document.getElementById("files");
  const list = document.getElementById("tasks");
  const most = Number(drop.dataset.most) * 1024 * 1024;
  const waiting = [];
  const watched = new Map();
  let uploading = 0;
  let events = null;

  const line = (name) => {
    const item = document.createElement("li");
    const text = document.createElement("span");
    const bar = document.createElement("progress");
    const button = document.createElement("button");
    bar.max = 1;
    bar.value = 0;
    bar.setAttribute("aria-label", name);
    button.className = "quiet";
    button.hidden = true;
    item.append(text, bar, button);
    list.append(item);
    const offer = (label, work) => {
      button.hidden = !label;
      button.textContent = label;
      button.onclick = work;
    };
    return { item, bar, offer, say: (words) => { text.textContent = `${name}: ${words}`; } };
  };

  const ended = (row, file, words) => {
    row.say(words);
    row.bar.hidden = true;
    row.offer("Try again", () => { row.item.remove(); add(file); });
  };

  const follow = () => {
    events?.close();
    if (!watched.size) return;
    events = new EventSource(`/tasks?ids=${[...watched.keys()].join(",")}`);
    events.addEventListener("end", () => events.close());
    events.onmessage = (event) => {
      const state = JSON.parse(event.data);
      const { row, file } = watched.get(state.id) ?? {};
      if (!row) return;
      row.bar.value = state.progress ?? 0;
      if (state.status === "queued" || state.status === "running") {
        row.say(state.status === "running" ? state.current_step ?? "reading" : "queued");
        return;
      }
      watched.delete(state.id);
      if (state.status === "completed") {
        row.say("completed");
        row.bar.hidden = true;
        row.offer("");
      } else ended(row, file, state.status ?? state.message ?? "failed");
    };
  };

  const upload = async (file, row) => {
    row.say("uploading");
    const headers = { "x-csrf": csrf, "x-filename": encodeURIComponent(file.name) };
    try {
      const answer = await fetch("/documents", { method: "POST", body: file, headers });
      const is_json = (answer.headers.get("content-type") ?? "").includes("json");
      const told = is_json ? await answer.json() : { message: await answer.text() };
      if (answer.status === 401) throw new Error("you are logged out: load the page again to log in");
      if (!told.success || !told.task_id) throw new Error(told.message ?? "refused");
      const id = told.task_id;
      watched.set(id, { row, file });
      row.offer("Cancel", () => fetch(`/tasks/${id}/cancel`, { method: "POST", headers: { "x-csrf": csrf } }));
      follow();
    } catch (problem) {
      ended(row, file, problem.message);
    }
  };

  const next = async () => {
    if (uploading >= AT_A_TIME || !waiting.length) return;
    uploading += 1;
    await upload(...waiting.shift());
    uploading -= 1;
    next();
  };

  const add = (file) => {
    const row = line(file.name);
    if (file.size > most) {
      row.say(`larger than ${drop.dataset.most} MB`);
      row.bar.hidden = true;
      return;
    }
    row.say("waiting");
    waiting.push([file, row]);
    next();
  };

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

  input.addEventListener("change", () => { [...input.files].forEach(add); input.value = ""; });
  drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
    if (entries.length) entries.forEach(walk);
    else [...event.dataTransfer.files].forEach(add);
  });
}
