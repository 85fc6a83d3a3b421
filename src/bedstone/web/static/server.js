// Requests to the server; it returns HTML with every value escaped.
const csrf = document.querySelector("meta[name=csrf]").content;

export async function get(address, signal) {
  return read(await fetch(address, { signal, headers: { "x-part": "1" } }));
}

export async function post(address, body, more = {}, options = {}) {
  const headers = { "x-csrf": csrf, "x-part": "1", ...more };
  return read(await fetch(address, { method: "POST", body, headers, ...options }));
}

async function read(answer) {
  const text = await answer.text();
  if (answer.status === 401) throw new Error("You are logged out. Reload the page to log in.");
  if (!answer.ok) throw new Error(text || `The server returned status ${answer.status}.`);
  return text;
}
