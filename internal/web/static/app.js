// The page works without this file. It keeps the live table current, streams a search, fetches sparklines, copies commands and takes keys.
// Markup comes from the server's templates, which escape what was recorded; nothing here makes markup of data.
"use strict";

const parse = (html) => new DOMParser().parseFromString(html, "text/html");

// keyOf tells which child of an old list a child of a new one is.
const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.dataset.key : undefined);

// morph makes old equal to now and leaves alone what is equal, so that focus and selection stay.
function morph(old, now) {
  if (old.isEqualNode(now)) return;
  if (old.nodeType !== now.nodeType || old.nodeName !== now.nodeName || keyOf(old) !== keyOf(now)) {
    old.replaceWith(document.importNode(now, true));
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    old.nodeValue = now.nodeValue;
    return;
  }
  const here = old.classList.contains("here"); // the row that the keys are at
  for (const a of [...old.attributes]) if (!now.hasAttribute(a.name)) old.removeAttribute(a.name);
  for (const a of now.attributes) if (old.getAttribute(a.name) !== a.value) old.setAttribute(a.name, a.value);
  if (here) old.classList.add("here");
  morphChildren(old, now);
}

function morphChildren(old, now) {
  const keyed = new Map();
  for (const c of old.children) if (keyOf(c)) keyed.set(keyOf(c), c);
  let at = old.firstChild;
  for (const want of now.childNodes) {
    const same = keyOf(want) && keyed.get(keyOf(want));
    if (same) {
      if (same === at) at = at.nextSibling;
      else old.insertBefore(same, at);
      morph(same, want);
    } else if (at && !keyOf(at) && !keyOf(want)) {
      const next = at.nextSibling;
      morph(at, want);
      at = next;
    } else {
      old.insertBefore(document.importNode(want, true), at);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

// answered takes over into the head what the part that changes says of it.
function answered(part) {
  document.body.classList.remove("stale");
  const chip = document.getElementById("status");
  if (!chip || !part.dataset.status) return;
  chip.textContent = part.dataset.status;
  chip.className = "chip " + part.dataset.mood;
}

// silent says that what is shown is of the past.
function silent() {
  if (document.body.classList.contains("stale")) return;
  document.body.classList.add("stale");
  const chip = document.getElementById("status");
  if (!chip) return;
  chip.textContent = "no answer since " + new Date().toLocaleTimeString([], { hour12: false }) + ", asking again";
  chip.className = "chip bad";
}

// poll asks again for the part of the page that changes. A hidden page asks for nothing.
async function poll() {
  const part = document.querySelector("[data-poll]");
  if (!part) return;
  const every = Number(part.dataset.every);
  if (!document.hidden) {
    try {
      const answer = await fetch(part.dataset.poll, { headers: { Accept: "text/html" } });
      if (!answer.ok) throw new Error(answer.statusText);
      const now = parse(await answer.text());
      const swap = part.dataset.swap;
      if (swap) morph(document.querySelector(swap), now.querySelector(swap));
      else morph(part, now.querySelector("[data-poll]"));
      sparks();
      answered(part);
    } catch {
      silent(); // the program ended, or is away for a moment
    }
  }
  setTimeout(poll, document.body.classList.contains("stale") ? Math.max(every, 2000) : every);
}

// search reads hits as the server finds them.
async function search() {
  const rows = document.querySelector("[data-search]");
  if (!rows) return;
  const words = document.querySelector("#progress .words");
  const bar = document.querySelector("#progress progress");
  const stop = new AbortController();
  const ended = () => (document.querySelector("#stop").hidden = true);
  document.querySelector("#stop").addEventListener("click", () => stop.abort());
  const take = (line) => {
    const f = JSON.parse(line);
    if (f.row) {
      const row = document.importNode(parse("<table><tbody>" + f.row + "</tbody></table>").querySelector("tr"), true);
      row.dataset.at = f.at;
      rows.insertBefore(row, [...rows.children].find((r) => Number(r.dataset.at) > f.at) ?? null);
      sparks();
    }
    bar.max = f.of || 1;
    bar.value = f.looked;
    words.textContent = f.error ? f.error : `${f.full ? "the first " : ""}${number(f.full ? rows.children.length : f.hits)} found in ${number(f.looked)} of ${number(f.of)}` + (f.done ? "" : " …");
    if (f.done) ended();
    if (f.done && !f.error && !f.hits) {
      document.querySelector("#none").hidden = false;
      rows.closest(".scroll").hidden = true;
    }
  };
  try {
    await lines(rows.dataset.search, stop.signal, take);
  } catch (e) {
    words.textContent += stop.signal.aborted ? " (stopped)" : " (" + e.message + ")";
    ended();
  }
}

// number is a count as the server writes it: in groups of three.
const number = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, "\u202f");

// sparks asks for the sparklines of the rows that are seen and have none, page by page; each is set as it is drawn.
let drawing = false;
async function sparks() {
  if (drawing) return;
  drawing = true;
  for (;;) {
    const cells = [...document.querySelectorAll("td[data-spark]")].filter((c) => c.offsetParent !== null).slice(0, 100);
    if (!cells.length) break;
    const byID = new Map(cells.map((c) => [c.dataset.spark, c]));
    cells.forEach((c) => c.removeAttribute("data-spark")); // each is asked for once
    try {
      await lines("/part/sparks?" + new URLSearchParams([...byID.keys()].map((id) => ["id", id])), undefined, (line) => {
        const f = JSON.parse(line);
        const svg = parse(f.svg).querySelector("svg");
        if (svg) byID.get(f.id)?.replaceChildren(document.importNode(svg, true));
      });
    } catch {
      break; // the table says the same without
    }
  }
  drawing = false;
}

// lines reads an answer line by line as it comes.
async function lines(address, signal, take) {
  const answer = await fetch(address, { signal });
  if (!answer.ok) throw new Error(answer.statusText);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    parts.filter(Boolean).forEach(take);
  }
}

async function copy(button) {
  const from = document.getElementById(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(from.textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(from); // without the right to the clipboard: one key is left to press
    button.textContent = "Press Ctrl-C";
  }
  setTimeout(() => (button.textContent = "Copy"), 1500);
}

const rowsOf = () => [...document.querySelectorAll(".rows tbody tr")].filter((r) => r.querySelector(".go"));

function step(by) {
  const rows = rowsOf();
  if (!rows.length) return;
  const here = rows.findIndex((r) => r.classList.contains("here"));
  const next = here < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(Math.max(here + by, 0), rows.length - 1);
  rows.forEach((r, i) => r.classList.toggle("here", i === next));
  rows[next].querySelector(".go").focus();
  rows[next].scrollIntoView({ block: "nearest" });
}

const go = (selector) => document.querySelector(selector)?.click();
let before = "";

const keys = {
  j: () => step(1),
  k: () => step(-1),
  "[": () => go('a[rel="prev"]'),
  "]": () => go('a[rel="next"]'),
  "?": () => document.getElementById("help").showModal(),
  "/": (e) => {
    const field = document.getElementById("search");
    if (!field) return;
    e.preventDefault();
    field.focus();
  },
  l: () => before === "g" && location.assign("/"),
  r: () => before === "g" && location.assign("/runs"),
};

document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.target.closest("input, select, textarea, dialog")) {
    if (e.key === "Escape") e.target.blur();
    return;
  }
  keys[e.key]?.(e);
  before = e.key;
});

document.addEventListener("click", (e) => {
  const button = e.target.closest("[data-copy]");
  if (button) return void copy(button);
  if (e.target.closest("a, button, input, select, summary") || String(getSelection())) return;
  e.target.closest(".rows tbody tr")?.querySelector(".go")?.click();
});

if (document.querySelector("[data-poll]")) setTimeout(poll, 300);
search();
sparks();
