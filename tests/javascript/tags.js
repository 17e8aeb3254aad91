// Counts the Python scripts of tags.html that are done.
const done = () => {
  document.body.dataset.done = String(Number(document.body.dataset.done ?? 0) + 1);
};
document.addEventListener("load", (event) => event.target.type === "text/python" && done(), true);
document.addEventListener("error", (event) => event.target.type === "text/python" && done(), true);
