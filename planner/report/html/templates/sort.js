"use strict";
const SIZES = { us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600 };
const NUMBER = /^[^\d-]*(-?[\d,]*\.?\d+)\s*(us|ms|s|min|h)?\b/;

function value(cell) {
  const text = cell.textContent.trim();
  const found = NUMBER.exec(text);
  if (!found) return -Infinity;
  const sign = text.startsWith("-") && !found[1].startsWith("-") ? -1 : 1;
  return sign * parseFloat(found[1].replaceAll(",", "")) * (SIZES[found[2]] ?? 1);
}

function sort(table, column, head) {
  const falling = head.getAttribute("aria-sort") === "ascending";
  const numeric = head.classList.contains("number");
  const body = table.tBodies[0];
  const rows = [...body.rows].sort((a, b) => {
    const [x, y] = [a.cells[column], b.cells[column]];
    const order = numeric ? value(x) - value(y) || 0 : x.textContent.localeCompare(y.textContent, "en", { numeric: true });
    return falling ? -order : order;
  });
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", falling ? "descending" : "ascending");
  body.append(...rows);
}

for (const table of document.querySelectorAll("table.sortable")) {
  if (table.tBodies[0].rows.length < 2) continue;
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(table, column, head));
    head.append(button);
  });
}
