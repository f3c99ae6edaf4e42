"use strict";
// A click on a column's title sorts by it: numbers the largest first, and what has none last; again, the other way round.
const valueOf = (row, index) => {
  const cell = row.cells[index];
  if (!cell.classList.contains("number")) return cell.textContent;
  return cell.dataset.value === "" ? null : Number(cell.dataset.value);
};
const compared = (one, other) => typeof one === "number" ? one - other : one.localeCompare(other);
function sortBy(header) {
  const table = header.closest("table"), body = table.tBodies[0], index = header.cellIndex;
  const before = header.getAttribute("aria-sort");
  const downwards = before ? before === "ascending" : header.classList.contains("number");
  for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", downwards ? "descending" : "ascending");
  const rows = [...body.rows].map((row) => [valueOf(row, index), row]);
  rows.sort(([one], [other]) => {
    if (one === null || other === null) return (one === null) - (other === null);
    return downwards ? compared(other, one) : compared(one, other);
  });
  body.append(...rows.map(([, row]) => row));
}
for (const header of document.querySelectorAll("thead th")) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...header.childNodes);
  button.addEventListener("click", () => sortBy(header));
  header.append(button);
}
