/* Runs of a model compared with people, as psychometrics.measures.norms.compare_means does it. */
window.explorerScripts = window.explorerScripts || {};
window.explorerScripts["ten-runs"] = function (body, data, tools) {
  "use strict";
  const { html, svg, shown, value } = tools;
  const LEVEL = 0.01; // of the test of variances, as in the paper
  const OWN = -1;

  /* --- the distributions of t and of F, by the incomplete beta function */

  const LANCZOS = [
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
    -176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6,
    1.5056327351493116e-7,
  ];

  function logGamma(x) {
    const sum = LANCZOS.slice(1).reduce((total, one, i) => total + one / (x + i), LANCZOS[0]);
    const t = x + 6.5;
    return (x - 0.5) * Math.log(t) - t + Math.log(Math.sqrt(2 * Math.PI) * sum);
  }

  /* The continued fraction of the incomplete beta function, by Lentz's method. */
  function fraction(x, a, b) {
    const TINY = 1e-300;
    const steps = (m) => [
      (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m)),
      (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1)),
    ];
    let c = 1;
    let d = 1 / (1 - ((a + b) * x) / (a + 1) || TINY);
    let result = d;
    for (let m = 1; m <= 100000; m += 1) {
      let change = 1;
      for (const step of steps(m)) {
        d = 1 / (1 + step * d || TINY);
        c = 1 + step / c || TINY;
        change = c * d;
        result *= change;
      }
      if (Math.abs(change - 1) < 1e-15) break;
    }
    return result;
  }

  /* The share of a beta distribution below x; `rest` is 1 - x without its loss of digits. */
  function below(x, rest, a, b) {
    if (x <= 0) return 0;
    if (rest <= 0) return 1;
    const size = a * Math.log(x) + b * Math.log(rest) + logGamma(a + b) - logGamma(a) - logGamma(b);
    if (x < (a + 1) / (a + b + 2)) return (Math.exp(size) * fraction(x, a, b)) / a;
    return 1 - (Math.exp(size) * fraction(rest, b, a)) / b;
  }

  const bothTails = (t, df) => below(df / (df + t * t), (t * t) / (df + t * t), df / 2, 0.5);

  function aboveF(f, one, other) {
    const all = other + one * f;
    return below(other / all, (one * f) / all, other / 2, one / 2);
  }

  /* The t that 5 % of the distribution exceed on both sides together. */
  function reach(df) {
    let [low, high] = [1.9, 12.8]; // from the normal distribution to one degree of freedom
    for (let i = 0; i < 60; i += 1) {
      const middle = (low + high) / 2;
      if (bothTails(middle, df) > 0.05) low = middle;
      else high = middle;
    }
    return (low + high) / 2;
  }

  /* --- the two comparisons */

  function tested(name, difference, se, df) {
    const t = difference / se;
    const half = reach(df) * se;
    return { name, t, df, p: bothTails(t, df), low: difference - half, high: difference + half };
  }

  function asPeople(x) {
    const difference = x.mean - x.normMean;
    const v1 = x.sd ** 2 / x.runs;
    const v2 = x.normSd ** 2 / x.normN;
    const larger = Math.max(x.sd, x.normSd);
    const smaller = Math.min(x.sd, x.normSd);
    const sizes = x.sd >= x.normSd ? [x.runs - 1, x.normN - 1] : [x.normN - 1, x.runs - 1];
    const equal = smaller > 0 && Math.min(1, 2 * aboveF((larger / smaller) ** 2, ...sizes)) > LEVEL;
    if (equal) {
      const df = x.runs + x.normN - 2;
      const pooled = ((x.runs - 1) * x.sd ** 2 + (x.normN - 1) * x.normSd ** 2) / df;
      return tested("Student", difference, Math.sqrt(pooled * (1 / x.runs + 1 / x.normN)), df);
    }
    const df = (v1 + v2) ** 2 / (v1 ** 2 / (x.runs - 1) + v2 ** 2 / (x.normN - 1));
    return tested("Welch", difference, Math.sqrt(v1 + v2), df);
  }

  function asOne(x) {
    const se = x.normSd * Math.sqrt(1 + 1 / x.normN);
    return tested("single", x.mean - x.normMean, se, x.normN - 1);
  }

  /* --- controls */

  const FIELDS = [
    ["mean", "Model\u2019s mean"], ["sd", "Model\u2019s SD"], ["runs", "Runs"],
    ["normMean", "People\u2019s mean"], ["normSd", "People\u2019s SD"], ["normN", "People"],
  ];
  const scales = data.scales.map((one, i) => [one.name, i]);
  const own = ["(numbers of your own)", OWN];
  const scale = tools.select("A published scale", [own, ...scales], chosen, data.first.scale);
  const model = tools.select("Model", data.models, chosen, data.first.model);
  const fields = FIELDS.map(([, label]) => tools.text(label, "", typed));
  const pasted = tools.text("Or paste the six numbers, in this order", "", spread);
  const link = html("a", { text: "Link to this comparison" });
  const said = tools.sentence();
  const picture = tools.plot(290, draw);
  fields.forEach((field) => (field.element.querySelector("input").inputMode = "decimal"));
  const numbers = tools.panel(...fields);
  numbers.classList.add("explorer-numbers");
  body.append(
    tools.panel(scale, model), numbers, tools.panel(pasted), said.element, picture.element, html("p", {}, link),
  );

  function number(text) {
    const plain = text.trim().replace("\u2212", "-").replace(/^([-+]?\d*),(\d+)$/, "$1.$2");
    return plain === "" ? NaN : Number(plain);
  }

  /* The six numbers, or what is wrong with the first that is none. */
  function read() {
    const x = {};
    for (const [i, [name, label]] of FIELDS.entries()) {
      const given = number(fields[i].value());
      if (!Number.isFinite(given)) return { wrong: `${label}: write a number.` };
      if (name === "sd" && given < 0) return { wrong: `${label}: write 0 or more.` };
      if (name === "normSd" && given <= 0) return { wrong: `${label}: write a number above 0.` };
      const least = { runs: 1, normN: 2 }[name];
      if (least && (given < least || !Number.isInteger(given)))
        return { wrong: `${label}: write a whole number from ${least} on, without a comma.` };
      x[name] = given;
    }
    return { x };
  }

  function write(values) {
    fields.forEach((field, i) => field.set(values[i]));
  }

  function chosen() {
    if (scale.value() === OWN) return update();
    const one = data.scales[scale.value()];
    write([...one.cells[model.value()], ...one.norm]);
    update();
  }

  function typed() {
    scale.set(OWN);
    update();
  }

  /* Numbers between spaces, tabs or semicolons may have a decimal comma; others are split at commas. */
  function spread() {
    const text = pasted.value().trim();
    const apart = text.split(/[\s;]+/).filter(Boolean);
    const parts = apart.length === FIELDS.length ? apart.map((one) => one.replace(/,$/, "")) : text.split(/[\s;]*,[\s;]*/);
    if (parts.length !== FIELDS.length || !parts.every((one) => Number.isFinite(number(one)))) return;
    write(parts);
    typed();
  }

  /* --- what is said and drawn */

  function probability(name, p) {
    const digits = p < 0.1 ? 3 : 2;
    const text = p < 0.001 ? "p < .001" : `p = ${p.toFixed(digits).replace(/^0/, "")}`;
    return html("strong", { "data-name": name, "data-value": p, text });
  }

  function comparison(x) {
    const one = asOne(x);
    const further = one.p < 0.001 ? "fewer than 0.1 %" : `about ${shown(100 * one.p, one.p < 0.1 ? 1 : 0)} %`;
    const first = x.runs === 1 ? ["One run cannot be counted as several people."] : people(x, asPeople(x));
    return [
      ...first, html("br"), ...result("As one respondent", "one", one),
      `: ${further} of people lie as far from their mean, or further, if their scores are normally distributed.`,
    ];
  }

  function people(x, test) {
    const verdict = test.p < LEVEL ? "differs significantly" : "does not differ significantly";
    return [
      ...result(`As ${x.runs} people`, "people", test),
      `: the model\u2019s mean ${verdict} from people\u2019s at the .01 level (${test.name}\u2019s test).`,
    ];
  }

  function result(start, name, test) {
    const digits = Number.isInteger(test.df) ? 0 : 1;
    return [
      `${start}, `, probability(name, test.p), " (t = ", value(`${name}, t`, test.t, 2), ", df = ",
      value(`${name}, df`, test.df, digits), ")",
    ];
  }

  function update() {
    const { x, wrong } = read();
    said.tell(wrong ? [html("span", { class: "explorer-wrong", text: wrong })] : comparison(x));
    link.hidden = Boolean(wrong);
    if (x) link.href = `#${new URLSearchParams(x)}`;
    picture.draw();
  }

  function rows(x) {
    const place = (test) => [x.normMean + test.low, x.normMean + test.high];
    const one = { name: "as one respondent", ends: place(asOne(x)) };
    return x.runs === 1 ? [one] : [{ name: `as ${x.runs} people`, ends: place(asPeople(x)) }, one];
  }

  function draw(root, width, height) {
    const { x } = read();
    if (!x) return;
    const drawn = rows(x);
    const wide = [x.normMean - 3 * x.normSd, x.normMean + 3 * x.normSd, ...drawn.flatMap((row) => row.ends)];
    const range = [Math.min(...wide), Math.max(...wide)];
    const area = { left: 12, right: width - 12, top: 26, bottom: height - 42 };
    const floor = area.bottom - 46 * drawn.length - 14;
    const { X, write: label } = tools.frame(root, area, range, [0, 1], { x: "score" }, { yticks: false });
    const bell = Array.from({ length: 121 }, (_, i) => {
      const z = -3 + i / 20;
      return [X(x.normMean + z * x.normSd), floor - Math.exp((-z * z) / 2) * (floor - area.top)];
    });
    const middle = X(x.normMean);
    root.append(
      svg("path", { d: `${tools.line(bell)}Z`, class: "explorer-people" }),
      svg("line", { x1: middle, x2: middle, y1: area.top, y2: area.bottom, class: "explorer-norm" }),
    );
    label([Math.min(middle + 6, width - 105), area.top - 8], "people\u2019s mean", {});
    drawn.forEach((row, i) => {
      const y = floor + 38 + 46 * i;
      const [from, to] = row.ends.map(X);
      root.append(
        svg("line", { x1: from, x2: to, y1: y, y2: y, class: "explorer-mark" }),
        ...[from, to].map((end) => svg("line", { x1: end, x2: end, y1: y - 6, y2: y + 6, class: "explorer-mark" })),
        svg("circle", { cx: X(x.mean), cy: y, r: 5, class: "explorer-point" }),
      );
      label([area.left + 4, y - 12], row.name, {});
    });
    const told = drawn.map((row) => `${row.name} ${row.ends.map((end) => shown(end, 2)).join(" to ")}`);
    tools.label(
      root,
      `People\u2019s scores as a bell around ${shown(x.normMean, 2)}, and 95 % intervals around the model\u2019s ${shown(x.mean, 2)}: ${told.join("; ")}.`,
    );
  }

  /* A link of this page fills the fields, and shows them. */
  function fromLink() {
    const linked = new URLSearchParams(location.hash.slice(1));
    if (!FIELDS.every(([name]) => linked.has(name))) return;
    write(FIELDS.map(([name]) => linked.get(name)));
    typed();
    body.closest(".explorer").scrollIntoView();
  }

  window.addEventListener("hashchange", fromLink);
  chosen();
  fromLink();
};
