/* The table of rows: sorting by a column, and a filter for rows predicted wrongly. */
(() => {
  "use strict";
  const table = document.getElementById("rows");
  if (!table) return;
  const body = table.tBodies[0];
  const collator = new Intl.Collator(undefined, { numeric: true });

  const byNumber = (a, b) => {
    const [x, y] = [Number.parseFloat(a.key), Number.parseFloat(b.key)];
    if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
    return x - y;
  };
  const byText = (a, b) => collator.compare(a.key, b.key);

  table.tHead.addEventListener("click", (event) => {
    const th = event.target.closest("button")?.closest("th");
    if (!th) return;
    const ascending = th.getAttribute("aria-sort") !== "ascending";
    for (const other of table.tHead.querySelectorAll("th")) other.removeAttribute("aria-sort");
    th.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    const rows = [...body.rows].map((tr) => {
      const cell = tr.cells[th.cellIndex];
      return { tr, key: cell.textContent };
    });
    rows.sort(th.dataset.kind === "number" ? byNumber : byText);
    if (!ascending) rows.reverse();
    body.append(...rows.map((row) => row.tr));
  });

  const filter = document.getElementById("only-wrong");
  filter?.addEventListener("change", () => {
    for (const tr of body.rows) tr.hidden = filter.checked && tr.dataset.wrong !== "1";
  });
})();
