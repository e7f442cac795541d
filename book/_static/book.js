/* What overflows says so and can be scrolled by keyboard; folded code opens for no printer. */
(function () {
  "use strict";
  const WIDE = ".table-region, div.highlight pre, div.math, pre.literal-block, .table-wrapper";

  function wrapTables() {
    for (const table of document.querySelectorAll(".bd-article table")) {
      if (table.closest(".table-region, .highlight, .hlist")) continue;
      const region = document.createElement("div");
      region.className = "table-region";
      table.replaceWith(region);
      region.append(table);
    }
  }

  function name(element) {
    if (element.dataset.label) return element.dataset.label;
    if (element.matches("pre")) return element.closest(".output") ? "Output" : "Code";
    return element.matches("div.math") ? "Formula" : "Table";
  }

  function cue(element) {
    const wide = element.scrollWidth > element.clientWidth + 2;
    element.classList.toggle("scrolls", wide);
    if (wide) {
      element.tabIndex = 0;
      element.setAttribute("role", "region");
      element.setAttribute("aria-label", name(element));
    } else {
      for (const attribute of ["tabindex", "role", "aria-label"]) element.removeAttribute(attribute);
    }
    let note = element.nextElementSibling;
    if (!note || !note.classList.contains("scroll-note")) {
      if (!wide) return;
      note = document.createElement("p");
      note.className = "scroll-note";
      note.textContent = "goes on to the right →";
      element.after(note);
    }
    const end = element.scrollLeft + element.clientWidth >= element.scrollWidth - 2;
    note.hidden = !wide || end;
  }

  function start() {
    wrapTables();
    // The words of a fold are its name.
    for (const fold of document.querySelectorAll("details.hide > summary")) {
      fold.removeAttribute("aria-label");
    }
    const wide = [...document.querySelectorAll(WIDE)];
    // A table can change its width, on paper for one, while its region keeps its own.
    const watch = new ResizeObserver((entries) => entries.forEach((entry) => cue(entry.target.closest(WIDE))));
    for (const element of wide) {
      if (element.hasAttribute("aria-label")) element.dataset.label = element.getAttribute("aria-label");
      watch.observe(element);
      for (const table of element.querySelectorAll(":scope > table")) watch.observe(table);
      element.addEventListener("scroll", () => cue(element), { passive: true });
    }
  }

  /* Paper is white, whatever the screen is. */
  const PAPER = 590; // pixels for a table between the margins of A4

  /* A table that is too wide for paper, however its words are broken, is made smaller. */
  function fitOnPaper(table) {
    const before = table.style.cssText;
    table.style.cssText += "; display: table; width: min-content; font-size: 7pt !important";
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
    document.documentElement.classList.add("in-a-book");
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
