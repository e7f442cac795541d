/* From an item to prompts, from their probabilities to a score: as the package does it. */
window.askScore = (function () {
  "use strict";

  const sum = (values) => values.reduce((a, b) => a + b, 0);
  const mean = (values) => sum(values) / values.length;
  const MOST = 400; // pairs of sentences; each batch draws all tables again

  /* --- the item */

  const listed = (text) => text.split(/[,;\n]/).map((one) => one.trim()).filter(Boolean);

  /* "never -4, often 2" as words with weights; a word without a number has NaN. */
  function words(text) {
    return listed(text).map((one) => {
      const found = one.match(/^(.*?)\s*[:=]?\s*([-+\u2212]?\d+(?:\.\d+)?)$/);
      return found && found[1]
        ? { word: found[1], weight: Number(found[2].replace("\u2212", "-")) }
        : { word: one, weight: NaN };
    });
  }

  function read(typed) {
    const sorted = words(typed.words).sort((a, b) => a.weight - b.weight);
    const [premise, hypothesis, text] = [typed.premise, typed.hypothesis, typed.text].map((one) => one.trim());
    return { text, premise, hypothesis, source: listed(typed.source), inverse: listed(typed.inverse), words: sorted };
  }

  /* What a questionnaire's file may not hold; with any of it nothing is asked. */
  function mistakes(item) {
    const found = [];
    const gaps = (item.premise + item.hypothesis).match(/{[^{}]*}/g) || [];
    const rest = (item.premise + item.hypothesis).replace(/{[^{}]*}/g, "");
    for (const name of ["{term}", "{intensifier}"]) {
      const times = gaps.filter((gap) => gap === name).length;
      if (times !== 1) found.push(`Premise and hypothesis together need ${name} once; they have it ${times} times.`);
    }
    if (/[{}]/.test(rest) || gaps.some((gap) => !["{term}", "{intensifier}"].includes(gap)))
      found.push("Braces are for {term} and {intensifier} alone; take the others out.");
    if (!item.premise || !item.hypothesis) found.push("Write a premise and a hypothesis.");
    if (!item.source.length || !item.inverse.length) found.push("Give at least one source term and one inverse term.");
    if (new Set(item.words.map((one) => one.weight)).size < 2) found.push("Give words of at least two different weights.");
    for (const { word, weight } of item.words)
      if (Number.isNaN(weight)) found.push(`Write a weight after \u201c${word}\u201d, such as \u201c${word} 2\u201d.`);
    const terms = [...item.source, ...item.inverse];
    const each = item.words.map((one) => one.word);
    for (const names of [terms, each]) {
      const folded = names.map((name) => name.normalize("NFKC").toLowerCase());
      const twice = names.find((_, i) => folded.indexOf(folded[i]) < i);
      if (twice) found.push(`\u201c${twice}\u201d is there twice; keep one.`);
      if (names.some((name) => /[{}]/.test(name))) found.push("Terms and words hold no braces.");
    }
    const pairs = terms.length * each.length;
    if (pairs > MOST) found.push(`${pairs} pairs of sentences are too many for this page; take out terms or words until there are ${MOST} or fewer.`);
    const all = [item.text, item.premise, item.hypothesis, ...terms, ...each].join(" ");
    if (/<[a-zA-Z/!?]/.test(all)) found.push("\u201c<\u201d before a letter reads as a tag; put a blank after it.");
    if (/\p{Cc}|\p{Cs}|\p{Zl}|\p{Zp}|\u200b|\ufeff|[\u2060-\u206f\u202a-\u202e\ufffe\uffff]/u.test(all))
      found.push("There is an invisible sign; take it out.");
    return [...new Set(found)];
  }

  function prompts(item) {
    const terms = [...item.source.map((term) => [term, 1]), ...item.inverse.map((term) => [term, -1])];
    return terms.flatMap(([term, polarity]) =>
      item.words.map(({ word, weight }) => {
        const filled = [item.premise, item.hypothesis].map((text) => {
          const [first, ...others] = text.replace("{term}", () => term).replace("{intensifier}", () => word);
          return [first.toUpperCase(), ...others].join("");
        });
        return { term, polarity, word, weight, premise: filled[0], hypothesis: filled[1] };
      }),
    );
  }

  /* The first words of the item: the file's name and its id. */
  function fileName(item, kind = "item") {
    const plain = item.text.normalize("NFKD").toLowerCase().match(/[a-z0-9]+/g) || [];
    return [kind, ...plain.slice(0, 3)].join("-").slice(0, 40);
  }

  const q = JSON.stringify;

  /* A file that `psychometrics check` accepts, of scales and items that are YAML already. */
  function yamlFile(id, title, short, words, scales, items) {
    const levels = [...new Set(words.map((one) => one.weight))].map((weight) => {
      const same = words.filter((one) => one.weight === weight).map((one) => q(one.word));
      return `  - {weight: ${weight}, terms: [${same.join(", ")}]}`;
    });
    return [
      "# Written with the page Ask a model. Add where the items come from and who may use them.",
      `id: ${id}`, `title: ${q(title)}`, `short_title: ${q(short)}`, `measures: ${q(title)}`,
      'citation: "none"', 'source: "written for this file"', 'licence: "not stated"',
      "intensifiers:", ...levels, "scales:", ...scales, "items:", ...items, "",
    ].join("\n");
  }

  function yamlItem(id, text, templates) {
    const asked = templates.length
      ? [
          "    terms:", `      source: [${templates[0].source.map(q).join(", ")}]`,
          `      inverse: [${templates[0].inverse.map(q).join(", ")}]`, "    templates:",
        ]
      : [];
    const each = templates.flatMap((one) => [`      - premise: ${q(one.premise)}`, `        hypothesis: ${q(one.hypothesis)}`]);
    return [`  - id: ${id}`, `    text: ${q(text)}`, ...asked, ...each].join("\n");
  }

  function yaml(item) {
    const id = fileName(item);
    const text = item.text || "An item of my own";
    const scales = [`  - {id: ${id}, title: "My item", items: all}`];
    return yamlFile(id, text, "My item", item.words, scales, [yamlItem(`${id}-1`, text, [item])]);
  }

  /* --- the score */

  function steps(table) {
    const raised = table.map((row) => row.map((p) => Math.max(p, 1e-12)));
    const totals = raised[0].map((_, j) => sum(raised.map((row) => row[j])));
    const shares = raised.map((row) => row.map((p, j) => p / totals[j]));
    return { shares, pss: shares.map((row) => row.map((share) => share / sum(row))) };
  }

  /* Student's interval of a mean, corrected for skewness: psychometrics.measures.intervals. */
  function interval(values, t) {
    const n = values.length;
    const middle = mean(values);
    const away = values.map((x) => x - middle);
    const spread = Math.sqrt(sum(away.map((x) => x * x)) / (n - 1));
    if (n < 2 || !(spread > 1e-12 * Math.max(...values.map(Math.abs)))) return [NaN, NaN];
    const skewness = n > 2 ? (sum(away.map((x) => x ** 3)) / spread ** 3) * (n / ((n - 1) * (n - 2))) : 0;
    const a = skewness / (3 * Math.sqrt(n));
    const factor = t[Math.min(n - 1, t.length) - 1];
    return [factor, -factor].map((tail) => {
      const turned = Math.abs(a) > 1e-6 ? (Math.cbrt(1 + 3 * a * (tail - a / 2)) - 1) / a : tail;
      const kept = Math.max(-1.5 * factor, Math.min(1.5 * factor, turned));
      return middle - (kept * spread) / Math.sqrt(n);
    });
  }

  /* Score of a table of P(entailment), its interval over the source terms, and how decided it is. */
  function score(item, table, t) {
    const { shares, pss } = steps(table);
    const weights = item.words.map((one) => one.weight);
    const each = pss.slice(0, item.source.length).map((row) => mean(row.map((x, j) => x * weights[j])));
    const squares = pss.flatMap((row) => row.map((x) => (row.length * x - 1) ** 2));
    const [low, high] = interval(each, t);
    return { shares, pss, each, score: mean(each), low, high, decided: 100 * Math.sqrt(mean(squares)) };
  }

  /* --- an untrained head: softmax(V tanh(W h)), weights normal with a deviation of 0.02 */

  function normals(seed) {
    let state = seed >>> 0;
    const uniform = () => {
      state = (state + 0x6d2b79f5) | 0; // mulberry32
      let x = Math.imul(state ^ (state >>> 15), 1 | state);
      x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
      return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
    };
    return () => 0.02 * Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  }

  function headLogits(vectors, seed) {
    const [draw, width] = [normals(seed), vectors[0].length];
    const matrix = (rows) => Array.from({ length: rows }, () => Float64Array.from({ length: width }, draw));
    const times = (rows, h) => rows.map((row) => row.reduce((total, w, i) => total + w * h[i], 0));
    const [W, V] = [matrix(width), matrix(3)];
    return vectors.map((h) => times(V, times(W, h).map(Math.tanh)));
  }

  /* P(entailment) of logits multiplied by a factor. */
  function entailment(logits, factor) {
    return logits.map((row) => {
      const most = Math.max(...row);
      const powers = row.map((x) => Math.exp(factor * (x - most)));
      return powers[0] / sum(powers);
    });
  }

  const tabled = (item, values) =>
    [...item.source, ...item.inverse].map((_, i) => values.slice(i * item.words.length, (i + 1) * item.words.length));

  /* The factor that makes a head as decided as the model, or the largest one tried. */
  function matching(item, logits, decided, t) {
    let [low, high] = [-8, 8];
    for (let i = 0; i < 40; i += 1) {
      const middle = (low + high) / 2;
      const found = score(item, tabled(item, entailment(logits, Math.exp(middle))), t).decided;
      if (found < decided) low = middle;
      else high = middle;
    }
    return Math.exp(high);
  }

  return { read, mistakes, prompts, fileName, yaml, yamlFile, yamlItem, interval, score, tabled, headLogits, entailment, matching };
})();
