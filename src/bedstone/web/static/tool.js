// Call a tool without leaving the page.
import { post } from "./server.js";

const form = document.getElementById("call");
const answer = document.getElementById("answer");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  answer.setAttribute("aria-busy", "true");
  try {
    answer.innerHTML = await post(form.action, new FormData(form));
  } catch (problem) {
    answer.textContent = problem.message;
  } finally {
    answer.removeAttribute("aria-busy");
  }
});
