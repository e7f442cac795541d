/* What overflows says so and can be scrolled by keyboard; code and long legends are folded until a switch opens them. */
(function () {
  "use strict";
  const WIDE = ".table-region, div.highlight pre, div.math, pre.literal-block, .table-wrapper, .explorer-scroll";

  function wrapTables() {
    for (const table of document.querySelectorAll(".bd-article table")) {
      if (table.closest(".table-region, .highlight, .hlist")) continue;
      const region = document.createElement("div");
      region.className = "table-region";
      table.replaceWith(region);
      region.append(table);
    }
  }

  /* The theme gives the buttons that unfold a chapter's pages in the list of pages no name. */
  function nameToggles() {
    for (const toggle of document.querySelectorAll("summary:has(> .toctree-toggle)")) {
      const chapter = toggle.closest("li").querySelector("a").textContent;
      toggle.setAttribute("aria-label", `Pages of ${chapter}`);
    }
  }

  function name(element) {
    if (element.dataset.label) return element.dataset.label;
    if (element.matches("pre")) return element.closest(".output") ? "Output" : "Code";
    return element.matches("div.math") ? "Formula" : "Table";
  }

  /* A little that overflows is made to fit, a wide table gets the empty column to the right, and what is wider still is turned; of what scrolls, the names of the rows stay. */
  const LITTLE = 20; // pixels
  const MARGIN = 24; // pixels that stay free to the right of a wide table

  const PHONE = matchMedia("(max-width: 600px)");

  /* Whether rows become paragraphs: where a table stays too wide, and for many columns on a phone; not if it is long there. */
  function turns(element, table) {
    if (!table || !table.querySelector("td[data-label]")) return false;
    if (PHONE.matches) return !table.matches(".long") && (table.matches(".turns") || overflows(element));
    return overflows(element);
  }

  /* The list of the page's sections is folded while a wide table lies where it stands. */
  const wideInView = new Set();
  const sight = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) wideInView[isIntersecting ? "add" : "delete"](target);
    document.querySelector(".bd-sidebar-secondary")?.classList.toggle("hide", wideInView.size > 0);
  });

  function narrow(element) {
    element.classList.remove("wide");
    element.style.width = "";
  }

  function widen(element) {
    const room = document.documentElement.clientWidth - element.getBoundingClientRect().left - MARGIN;
    const free = !element.closest("details, .admonition, .explorer, li, dd");
    if (PHONE.matches || !free || room <= element.clientWidth) return;
    element.classList.add("wide");
    element.style.width = `${room}px`;
    sight.observe(element);
  }

  const overflows = (element) => element.scrollWidth > element.clientWidth + 2;

  function fit(element) {
    const [table, before] = [element.querySelector("table"), element.scrollLeft];
    element.scrollLeft = 0;
    element.classList.remove("tight", "turned");
    narrow(element);
    const over = element.scrollWidth - element.clientWidth;
    element.classList.toggle("tight", over > 2 && over <= LITTLE);
    if (table && overflows(element)) widen(element);
    if (turns(element, table)) element.classList.replace("tight", "turned") || element.classList.add("turned");
    const wide = overflows(element);
    for (const cell of element.querySelectorAll(".stays")) cell.classList.remove("stays");
    const rows = wide && table && table.tBodies[0] ? [...table.tBodies[0].rows] : [];
    const first = rows.find((row) => !row.matches(".group"));
    const names = first ? [...first.cells].filter((cell, i) => cell.matches("th") || !i) : [];
    const ends = names.map((cell) => cell.offsetLeft + cell.offsetWidth + 1);
    const edge = Math.max(0, ...ends.filter((end) => end <= element.clientWidth / 2));
    const cells = edge ? [...table.querySelectorAll("th, td")].map((cell) => [cell, cell.offsetLeft]) : [];
    for (const [cell, left] of cells.filter(([cell, left]) => left + cell.offsetWidth <= edge)) {
      cell.classList.add("stays");
      cell.style.left = `${left - 1}px`; // over the border between them
    }
    element.scrollLeft = before;
    cue(element);
  }

  const notes = { after: new WeakMap(), before: new WeakMap() };

  function note(element, where, shown) {
    if (shown && !notes[where].has(element)) {
      const made = document.createElement("p");
      made.className = "scroll-note";
      made.textContent = "goes on to the right \u2192";
      element[where](made);
      notes[where].set(element, made);
    }
    const there = notes[where].get(element);
    if (there) there.hidden = !shown;
    return there;
  }

  function cue(element) {
    const wide = overflows(element);
    element.classList.toggle("scrolls", wide);
    if (wide) {
      element.tabIndex = 0;
      element.setAttribute("role", "region");
      element.setAttribute("aria-label", name(element));
    } else {
      for (const attribute of ["tabindex", "role", "aria-label"]) element.removeAttribute(attribute);
    }
    const end = element.scrollLeft + element.clientWidth >= element.scrollWidth - 2;
    note(element, "after", wide && !end);
    // above what is longer than the screen, too, where it keeps its place, so that nothing moves
    const above = note(element, "before", wide && element.offsetHeight > window.innerHeight);
    if (above) above.style.visibility = end ? "hidden" : "";
  }

  const watch = new ResizeObserver((entries) => entries.forEach((entry) => fit(entry.target.closest(WIDE))));

  window.addEventListener("resize", () => document.querySelectorAll(".table-region.wide").forEach(fit));

  function follow(element) {
    if (element.hasAttribute("aria-label")) element.dataset.label = element.getAttribute("aria-label");
    watch.observe(element);
    // A table can change its width, on paper for one, while its region keeps its own.
    for (const table of element.querySelectorAll(":scope > table")) watch.observe(table);
    element.addEventListener("scroll", () => cue(element), { passive: true });
  }
  window.followWide = follow; // for the explorers' tables, which come later

  /* One switch under a chapter's title opens its code, and is remembered on all pages. */
  const CODE = ".bd-article details.hide.above-input";

  function recall(key) {
    try {
      return localStorage.getItem(key);
    } catch {
      return null; // a browser may forbid it
    }
  }

  function remember(key, value) {
    try {
      localStorage.setItem(key, value);
    } catch {
      // the switch works on this page alone
    }
  }

  /* Of several cells in a row that show nothing, one line is enough: it opens all of them. */
  function joinFolds(folds) {
    let first = null;
    for (const fold of folds) {
      const before = fold.closest(".cell").previousElementSibling;
      const silent = before?.matches(".cell:has(> details.above-input):not(:has(.cell_output))");
      if (silent && first) {
        fold.classList.add("joined");
        first.addEventListener("toggle", (event) => (fold.open = event.target.open));
      } else {
        first = fold;
      }
    }
  }

  function offerCode() {
    const folds = document.querySelectorAll(CODE);
    const title = document.querySelector(".bd-article h1");
    if (!folds.length || !title) return;
    const toggle = document.createElement("button");
    toggle.type = "button";
    toggle.className = "code-switch";
    let open = recall("code") === "open";
    const show = () => {
      for (const fold of folds) fold.open = open;
      toggle.textContent = open ? "Hide the code" : "Show the code";
    };
    toggle.addEventListener("click", () => {
      open = !open;
      show();
      remember("code", open ? "open" : "folded");
    });
    joinFolds(folds);
    show();
    title.after(toggle);
  }

  /* The names of a row's groups, above it or in a cell that several rows share, for each row that becomes a paragraph. */
  function nameGroups() {
    for (const body of document.querySelectorAll(".table-region tbody")) {
      let group = "";
      let shared = "";
      let rest = 0; // rows that the shared cell still covers
      for (const row of body.rows) {
        const first = row.cells[0];
        if (row.matches(".group")) group = row.textContent.trim();
        if (row.matches(".group") || !first?.matches("th")) continue;
        const names = [group, rest > 0 ? shared : ""].filter(Boolean);
        if (names.length) first.dataset.group = `${names.join(", ")}: `;
        rest -= 1;
        if (first.rowSpan > 1) {
          shared = first.textContent.trim();
          rest = first.rowSpan - 1;
        }
      }
    }
  }

  /* Of a long caption, the first sentence is shown; a switch shows the legend. */
  const LEGEND = 25; // words
  const SENTENCE = /[.?!]\)?\s+(?=\p{Lu}|\d|\()/u;

  function foldLegend(caption) {
    const first = [...caption.childNodes].find((node) => node.nodeType === Node.TEXT_NODE && SENTENCE.test(node.data));
    if (!first) return;
    const match = first.data.match(SENTENCE);
    const rest = document.createElement("span");
    const range = document.createRange();
    range.setStart(first, match.index + match[0].length);
    range.setEndAfter(caption.lastChild);
    if (range.toString().split(/\s+/).length < LEGEND) return;
    rest.append(range.extractContents());
    rest.className = "legend-rest";
    const toggle = document.createElement("button");
    toggle.type = "button";
    toggle.className = "legend-switch";
    toggle.textContent = "Legend";
    const show = (open) => {
      rest.classList.toggle("folded", !open);
      toggle.setAttribute("aria-expanded", open);
    };
    toggle.addEventListener("click", () => show(rest.matches(".folded")));
    show(false);
    caption.append(toggle, " ", rest);
  }

  /* Code that a plan or a claim quotes between backticks looks like code. */
  function markCode() {
    for (const place of document.querySelectorAll(".bd-article .text_html :is(td, p), .bd-article .plan :is(dd, li)")) {
      for (const node of [...place.childNodes].filter((child) => child.nodeType === Node.TEXT_NODE)) {
        const parts = node.data.split(/`([^`]+)`/);
        if (parts.length === 1) continue;
        const pieces = parts.map((text, at) => {
          if (at % 2 === 0) return text;
          const code = document.createElement("code");
          code.textContent = text;
          return code;
        });
        node.replaceWith(...pieces);
      }
    }
  }

  function start() {
    markCode();
    nameToggles();
    offerCode();
    wrapTables();
    nameGroups();
    document.querySelectorAll("figcaption .caption-text").forEach(foldLegend);
    // The words of a fold are its name.
    for (const fold of document.querySelectorAll("details.hide > summary")) {
      fold.removeAttribute("aria-label");
    }
    for (const cell of document.querySelectorAll(".table-region td"))
      if (/^[^a-z]{1,9} to [^a-z]{1,9}$/.test(cell.textContent.trim())) cell.classList.add("interval");
    document.querySelectorAll(WIDE).forEach(follow);
  }

  /* Paper is white, whatever the screen is. */
  const PAPER = 640; // pixels for a table between the margins of A4

  /* A table that is too wide for paper, however its words are broken, is made smaller. */
  function fitOnPaper(table) {
    const before = table.style.cssText;
    table.style.cssText += "; display: table; width: min-content; font-size: 7.5pt !important";
    const least = table.offsetWidth;
    table.style.cssText = before;
    table.style.setProperty("--fits", Math.min(1, PAPER / least).toFixed(3));
  }

  let theme = null;
  window.addEventListener("beforeprint", () => {
    document.querySelectorAll(".table-region table").forEach(fitOnPaper);
    theme = document.documentElement.dataset.theme;
    document.documentElement.dataset.theme = "light";
  });
  window.addEventListener("afterprint", () => {
    if (theme) document.documentElement.dataset.theme = theme;
  });

  /* The first page's number, where the whole book is printed page by page. */
  const first = Number(new URLSearchParams(location.search).get("page"));
  if (first > 0) {
    const rule = document.createElement("style");
    rule.textContent = `@media print { html { counter-reset: page ${first - 1}; } }`;
    document.head.append(rule);
    const address = document.querySelector("link[rel=canonical]")?.href || `${DOCUMENTATION_OPTIONS.pagename}.html`;
    document.documentElement.style.setProperty("--address", JSON.stringify(address));
    document.documentElement.classList.add("in-a-book");
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
