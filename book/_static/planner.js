/* How many models a study needs, by the formulas of the page on sample size.
 * Nothing leaves the page. Runs in the browser, and in node for the tests. */
(function () {
  "use strict";

  const REACH = 1.959964; // standard errors to either side of a 95 % interval
  const SKEW = 1.5; // by how much the book's skewed scores exceed the formulas

  /* Half widths of intervals with the planned models, and models for a wanted half width. */
  function plan(design) {
    const { models, items, asked, single, r, alpha, half, skewed } = design;
    const reliable = (asked * single) / (1 + (asked - 1) * single); // Spearman and Brown
    const observed = r * reliable; // both scales are asked as often
    const factor = REACH * (skewed ? SKEW : 1);
    const spread = 1 - observed ** 2;
    const parallel = Math.sqrt((2 * items) / (items - 1));
    return {
      reliable,
      observed,
      r: (factor * spread) / Math.sqrt(models - 1),
      alpha: (factor * (1 - alpha) * parallel) / Math.sqrt(models),
      models_for_r: Math.ceil(1 + ((factor * spread) / half) ** 2),
      models_for_alpha: Math.ceil(((factor * (1 - alpha) * parallel) / half) ** 2),
    };
  }

  function mistake(design) {
    const { models, items, asked, single, r, alpha, half } = design;
    if (!(models >= 3)) return "models: write 3 or more.";
    if (!(items >= 2)) return "items: write 2 or more.";
    if (!(asked >= 1)) return "wordings × runs: write 1 or more.";
    if (!(single > 0 && single <= 1)) return "share between models: write a number above 0, at most 1.";
    if (!(Math.abs(r) < 1)) return "correlation: write a number between -1 and 1.";
    if (!(alpha < 1)) return "alpha: write a number below 1.";
    if (!(half > 0)) return "wanted: write a number above 0.";
    return "";
  }

  function show(form) {
    const design = { skewed: form.elements.skewed.checked };
    for (const field of form.querySelectorAll("input[type=number]")) design[field.name] = field.valueAsNumber;
    const output = form.querySelector("output");
    const wrong = mistake(design);
    if (wrong) {
      output.textContent = wrong;
      return;
    }
    const found = plan(design);
    const sentences = [
      `A score has a reliability of ${found.reliable.toFixed(2)}, so a true correlation of ${design.r} shows as ${found.observed.toFixed(2)}.`,
      `With ${design.models} models its interval is ± ${found.r.toFixed(2)}; for ± ${design.half} ask ${found.models_for_r} models.`,
      `An alpha of ${design.alpha} is known to ± ${found.alpha.toFixed(2)}; for ± ${design.half} ask ${found.models_for_alpha} models.`,
    ];
    output.replaceChildren(...sentences.map((text) => Object.assign(document.createElement("p"), { textContent: text })));
  }

  if (typeof module !== "undefined") module.exports = { plan, mistake };
  else document.querySelectorAll("form.planner").forEach((form) => {
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", () => show(form));
    show(form);
  });
})();
