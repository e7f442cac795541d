/* Shares of trait and bias of a table of answers, as psychometrics.measures.bias computes them.
 * Nothing leaves the page. Runs in the browser, and in node for the tests. */
(function () {
  "use strict";

  const UNITS = ["model", "respondent_id", "respondent", "id", "participant"];

  /* Rows of a CSV text: commas, semicolons or tabs, with quotes. */
  function parse(text) {
    const first = text.split(/\r?\n/, 1)[0];
    const mark = ["\t", ";", ","].find((one) => first.includes(one)) || ",";
    const rows = [[]];
    let cell = "";
    let quoted = false;
    for (let i = 0; i < text.length; i++) {
      const letter = text[i];
      if (quoted) {
        if (letter !== '"') cell += letter;
        else if (text[i + 1] === '"') cell += text[++i];
        else quoted = false;
      } else if (letter === '"') quoted = true;
      else if (letter === mark || letter === "\n") {
        rows[rows.length - 1].push(cell.trim());
        cell = "";
        if (letter === "\n") rows.push([]);
      } else if (letter !== "\r") cell += letter;
    }
    rows[rows.length - 1].push(cell.trim());
    return rows.filter((row) => row.some((one) => one !== ""));
  }

  /* Means over the rows of each unit, of rows without a gap. */
  function read(text, reverse) {
    const [header, ...rows] = parse(text);
    if (!rows.length) throw new Error("There are no answers: paste a table with a line of heads, or choose a file.");
    const turned = reverse.split(/[\s,;]+/).filter(Boolean);
    const unknown = turned.filter((name) => !header.includes(name));
    if (unknown.length) throw new Error(`There is no column ${unknown[0]}: write the headers of the reverse-keyed items.`);

    const unit = header.findIndex((name) => UNITS.includes(name.toLowerCase()));
    const items = header.map((_, at) => at).filter((at) => at !== unit && rows.some((row) => number(row[at]) !== null));
    const wrong = rows.flatMap((row, line) => items.filter((at) => row[at] && number(row[at]) === null).map((at) => [line + 2, header[at], row[at]]));
    if (wrong.length) throw new Error(`Line ${wrong[0][0]}, column ${wrong[0][1]}: '${wrong[0][2]}' is not a number; write numbers, or leave the cell empty.`);

    const whole = rows.filter((row) => items.every((at) => number(row[at]) !== null));
    const groups = new Map();
    whole.forEach((row, at) => {
      const name = unit < 0 ? at : row[unit];
      groups.set(name, [...(groups.get(name) || []), items.map((one) => number(row[one]))]);
    });
    const values = [...groups.values()].map((part) => items.map((_, at) => mean(part.map((row) => row[at]))));
    const keys = items.map((at) => (turned.includes(header[at]) ? -1 : 1));
    return { values, keys, rows: whole.length, left: rows.length - whole.length };
  }

  function number(cell) {
    const text = (cell || "").replace(",", ".");
    return text !== "" && Number.isFinite(Number(text)) ? Number(text) : null;
  }

  function mean(values) {
    return values.reduce((sum, value) => sum + value, 0) / values.length;
  }

  function covariances(values) {
    const means = values[0].map((_, at) => mean(values.map((row) => row[at])));
    return means.map((a, i) => means.map((b, j) =>
      values.reduce((sum, row) => sum + (row[i] - a) * (row[j] - b), 0) / (values.length - 1)));
  }

  function alpha(matrix) {
    const size = matrix.length;
    const trace = matrix.reduce((sum, row, i) => sum + row[i], 0);
    return (size / (size - 1)) * (1 - trace / matrix.flat().reduce((sum, value) => sum + value, 0));
  }

  /* Mean covariance of the items of two kinds, with or without the items' own variances. */
  function block(matrix, keys, one, other, own) {
    const cells = [];
    matrix.forEach((row, i) => row.forEach((value, j) => {
      if (keys[i] === one && keys[j] === other && (own || i !== j)) cells.push(value);
    }));
    return cells.length ? mean(cells) : NaN;
  }

  function statistics(values, keys) {
    const matrix = covariances(values);
    const plain = block(matrix, keys, 1, 1, true);
    const reverse = block(matrix, keys, -1, -1, true);
    const between = block(matrix, keys, 1, -1, true);
    const size = (plain + reverse) / 2;
    const within = (block(matrix, keys, 1, 1, false) + block(matrix, keys, -1, -1, false)) / 2 / size;
    return {
      bias: (1 + between / Math.sqrt(plain * reverse)) / 2,
      trait_part: (within - between / size) / 2,
      bias_part: (within + between / size) / 2,
      error_part: 1 - within,
      alpha: alpha(matrix.map((row, i) => row.map((value, j) => value * keys[i] * keys[j]))),
      alpha_raw: alpha(matrix),
    };
  }

  /* Quantile .975 of Student's distribution, from its density by halving and Simpson's rule. */
  function student(freedom) {
    const density = (x) => Math.pow(1 + (x * x) / freedom, -(freedom + 1) / 2);
    const area = (high) => {
      // of the angle atan(x / sqrt(freedom)), over which the density is smooth and ends
      const end = Math.atan(high / Math.sqrt(freedom));
      const steps = 2000;
      let sum = 0;
      for (let i = 0; i <= steps; i++) {
        const x = Math.sqrt(freedom) * Math.tan((end * i) / steps);
        const weight = i === 0 || i === steps ? 1 : i % 2 ? 4 : 2;
        sum += weight * density(x) * (freedom + x * x);
      }
      return (sum * end) / steps / 3;
    };
    const whole = area(1e9);
    let low = 0;
    let high = 1000;
    for (let i = 0; i < 80; i++) {
      const middle = (low + high) / 2;
      if (area(middle) / whole < 0.95) low = middle;
      else high = middle;
    }
    return low;
  }

  const SCALES = {
    bias: [(x) => Math.atanh(2 * x - 1), (x) => (1 + Math.tanh(x)) / 2],
    alpha: [(x) => -Math.log(1 - x), (x) => 1 - Math.exp(-x)],
    other: [(x) => x, (x) => x],
  };

  /* Each statistic with the interval of the jackknife over respondents. */
  function shares(text, reverse) {
    const { values, keys, rows, left } = read(text, reverse);
    const n = values.length;
    if (n < 4) throw new Error(`There are ${n} respondents without a gap: four are needed.`);
    const kinds = [1, -1].map((kind) => keys.filter((key) => key === kind).length);
    if (Math.min(...kinds) < 1) throw new Error("Name the reverse-keyed columns: a share needs items of both kinds.");

    const parts = Math.min(n, 1000);
    const without = Array.from({ length: parts }, (_, part) => statistics(values.filter((_, at) => at % parts !== part), keys));
    const reach = (student(parts - 1) * (parts - 1)) / Math.sqrt(parts);
    const found = { n, rows, left };
    for (const [name, value] of Object.entries(statistics(values, keys))) {
      const [there, back] = SCALES[name] || (name.startsWith("alpha") ? SCALES.alpha : SCALES.other);
      const moved = without.map((one) => there(one[name]));
      const centre = mean(moved);
      const spread = Math.sqrt(moved.reduce((sum, one) => sum + (one - centre) ** 2, 0) / (parts - 1));
      found[name] = [value, back(there(value) - reach * spread), back(there(value) + reach * spread)];
    }
    const t = student(n - 2);
    const r = t / Math.sqrt(n - 2 + t * t);
    found.random = [0.5, (1 - r) / 2, (1 + r) / 2];
    return found;
  }

  const NAMES = {
    bias: "share of bias", random: "share of bias at random", trait_part: "trait, part of a mean's variance",
    bias_part: "bias, part of a mean's variance", error_part: "error, part of a mean's variance",
    alpha: "alpha as keyed", alpha_raw: "alpha, nothing reversed",
  };

  function sentence({ bias: [share], random: [, low, high] }) {
    const start = `The share of bias, ${share.toFixed(2)}, lies`;
    const range = `the range of random answers (${low.toFixed(2)} to ${high.toFixed(2)})`;
    if (share > high) return `${start} above ${range}: the respondents differ more in a bias than in the trait.`;
    if (share < low) return `${start} below ${range}: the respondents differ more in the trait than in a bias.`;
    return `${start} within ${range}, so it does not show whether trait or bias is larger.`;
  }

  function show(form) {
    const output = form.querySelector("output");
    output.replaceChildren();
    try {
      const found = shares(form.querySelector("textarea").value, form.querySelector("input[type=text]").value);
      output.appendChild(document.createElement("p")).textContent = sentence(found);
      const table = output.appendChild(document.createElement("table"));
      const digits = (x) => (Number.isFinite(x) ? x.toFixed(2) : "–");
      table.createCaption().textContent = `${found.n} respondents, ${found.rows} rows; ${found.left} rows with a gap left out. 95 % intervals over respondents.`;
      table.createTHead().innerHTML = "<tr><th>statistic</th><th>value</th><th>from</th><th>to</th></tr>";
      const body = table.createTBody();
      for (const [name, label] of Object.entries(NAMES)) {
        const row = body.insertRow();
        [label, ...found[name].map(digits)].forEach((text) => (row.insertCell().textContent = text));
      }
    } catch (error) {
      output.textContent = error.message;
    }
  }

  if (typeof module !== "undefined") module.exports = { sentence, shares, student };
  else document.querySelectorAll("form.trait-or-bias").forEach((form) => {
    form.addEventListener("submit", (event) => (event.preventDefault(), show(form)));
    form.querySelector("input[type=file]").addEventListener("change", async (event) => {
      form.querySelector("textarea").value = await event.target.files[0].text();
    });
  });
})();
