"use strict";
// What is typed, and what is chosen, leaves of a long list only what has it: `data-searches` names the list.
for (const form of document.querySelectorAll("form[data-searches]")) {
  const entries = [...document.getElementById(form.dataset.searches).children];
  const texts = new Map();
  const textOf = (entry) => {
    if (!texts.has(entry)) texts.set(entry, entry.textContent.toLowerCase());
    return texts.get(entry);
  };
  const said = form.querySelector("output");
  const search = () => {
    const words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const kind = form.elements.kind.value;
    let left = 0;
    for (const entry of entries) {
      entry.hidden = !((!kind || entry.dataset.kind === kind) && words.every((word) => textOf(entry).includes(word)));
      left += !entry.hidden;
    }
    said.textContent = `${left} of ${entries.length}`;
  };
  let waiting;
  form.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(search, 120); });
  form.addEventListener("submit", (event) => { event.preventDefault(); search(); });
  form.hidden = false;
  search();
}
