"use strict";

// Sortable tables: numbers by their key, text as people order it, what is missing last.
const collator = new Intl.Collator("en", { numeric: true });

function compare(first, second, column, direction) {
  const [a, b] = [first, second].map((row) => row.cells[column]);
  if (a.classList.contains("numeric")) {
    const [x, y] = [a, b].map((cell) => cell.dataset.key);
    if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
    return direction * (Number(x) - Number(y));
  }
  return direction * collator.compare(a.textContent, b.textContent);
}

function sortBy(header) {
  const table = header.closest("table");
  const body = table.tBodies[0];
  const before = header.getAttribute("aria-sort");
  const first = header.classList.contains("numeric") ? "descending" : "ascending";
  const other = first === "ascending" ? "descending" : "ascending";
  const order = before === first ? other : first;
  for (const each of header.parentNode.cells) each.setAttribute("aria-sort", "none");
  header.setAttribute("aria-sort", order);
  const direction = order === "ascending" ? 1 : -1;
  const rows = [...body.rows];
  rows.sort((a, b) => compare(a, b, header.cellIndex, direction));
  body.append(...rows);
}

for (const button of document.querySelectorAll("table.sortable th button")) {
  button.addEventListener("click", () => sortBy(button.closest("th")));
}

// Values of what the pointer or the arrow keys are on.
const tip = document.getElementById("tip");
const MARKS = "[data-tip], table.heat tbody td";
let current = null;

function tipOf(mark) {
  if (mark.dataset.tip !== undefined) return mark.dataset.tip;
  const column = mark.closest("table").tHead.rows[0].cells[mark.cellIndex];
  const row = mark.parentNode.cells[0].textContent;
  const kind = mark.closest("table").dataset.row;
  return `${kind} ${row}, ${column.dataset.name}: ${mark.textContent}`;
}

function show(mark) {
  hide();
  current = mark;
  mark.classList.add("current");
  tip.textContent = tipOf(mark);
  tip.hidden = false;
  const place = mark.getBoundingClientRect();
  const size = tip.getBoundingClientRect();
  const middle = place.left + place.width / 2 - size.width / 2;
  const left = Math.max(4, Math.min(middle, document.documentElement.clientWidth - size.width - 4));
  const above = place.top - size.height - 6;
  tip.style.left = `${left}px`;
  tip.style.top = `${above > 4 ? above : place.bottom + 6}px`;
}

function hide() {
  if (current) current.classList.remove("current");
  current = null;
  tip.hidden = true;
}

function move(box, key) {
  const marks = [...box.querySelectorAll(MARKS)];
  const width = box.querySelector("table.heat tbody tr")?.cells.length - 1 || 1;
  const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: width, ArrowUp: -width };
  const place = marks.indexOf(current);
  const next = place < 0 ? 0 : place + steps[key];
  if (next < 0 || next >= marks.length) return;
  marks[next].scrollIntoView({ block: "nearest", inline: "nearest" });
  show(marks[next]);
}

for (const box of document.querySelectorAll(".tips")) {
  box.addEventListener("pointerover", (event) => {
    const mark = event.target.closest(MARKS);
    if (mark) show(mark);
    else hide();
  });
  box.addEventListener("pointerleave", hide);
  box.addEventListener("blur", hide);
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
    if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
    move(box, event.key);
  });
}
addEventListener("scroll", () => current && show(current), { capture: true, passive: true });
