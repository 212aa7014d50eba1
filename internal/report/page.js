"use strict";
// Sets the numbers of another saved report beside those of this one. The page reads without it.
(() => {
  const numbersOf = (page) => {
    const node = page.getElementById("numbers");
    return new Map(JSON.parse(node ? node.textContent : "[]").map((n) => [n.name, n]));
  };
  const mine = numbersOf(document);
  const target = document.getElementById("differences");
  document.getElementById("beside").hidden = false;
  const cell = (row, text, kind) => {
    const td = document.createElement("td");
    td.textContent = text;
    td.className = kind;
    row.append(td);
  };
  const say = (text) => {
    const p = document.createElement("p");
    p.textContent = text;
    target.append(p);
  };
  const apart = (a, b) => [a.n, b.n, a.lo > b.hi || b.lo > a.hi].every(Boolean);
  const short = (v) => (Math.abs(v) >= 100 ? v.toFixed(1) : String(Number(v.toPrecision(4))));
  document.getElementById("other").addEventListener("change", async (event) => {
    target.replaceChildren();
    const file = event.target.files[0];
    if (!file) return;
    let other;
    try {
      other = numbersOf(new DOMParser().parseFromString(await file.text(), "text/html"));
    } catch (err) {
      say("This file is no report: " + err.message);
      return;
    }
    const both = [...mine.values()].filter((n) => other.has(n.name));
    say(`${both.length} numbers stand in both reports, ${mine.size - both.length} in this one alone, ${other.size - both.length} in the other one alone.`);
    if (both.length === 0) return;
    const table = document.createElement("table");
    const head = table.createTHead().insertRow();
    for (const [text, kind] of [["number", ""], ["other", "n"], ["this", "n"], ["this / other", "n"], ["spreads", ""]]) {
      const th = document.createElement("th");
      th.textContent = text;
      th.className = kind;
      head.append(th);
    }
    const body = table.createTBody();
    for (const n of both) {
      const o = other.get(n.name);
      const row = body.insertRow();
      cell(row, n.name, "");
      cell(row, short(o.value), "n");
      cell(row, short(n.value), "n");
      cell(row, o.value ? (n.value / o.value).toFixed(3) : "—", "n");
      cell(row, !n.n || !o.n ? "unknown" : apart(n, o) ? "apart" : "overlap", apart(n, o) ? "marked" : "");
    }
    target.append(table);
  });
})();
