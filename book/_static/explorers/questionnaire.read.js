/* A pasted questionnaire, as CSV or YAML: its items and scales, and their scores as the package makes them. */
window.askQuestionnaire = (function () {
  "use strict";
  const COLUMNS = ["item", "scale", "reverse", "options", "source", "inverse", "premise", "hypothesis"];
  const YES = ["yes", "y", "ja", "s\u00ed", "oui", "true", "1", "-1", "r", "reverse", "x"];
  const NO = ["", "no", "n", "nein", "non", "false", "0", "+1"];
  const MOST = 2000; // pairs of sentences, some minutes
  const sum = (values) => values.reduce((a, b) => a + b, 0);
  const mean = (values) => sum(values) / values.length;
  const list = (value) => (Array.isArray(value) ? value : []);
  const line = (value) => String(value ?? "").trim();

  /* --- a table */

  /* Rows of cells; the mark between cells is the one that the first line has most often. */
  function rows(text) {
    const head = text.trimStart().split("\n", 1)[0];
    const mark = [",", ";", "\t"].reduce((a, b) => (head.split(b).length > head.split(a).length ? b : a));
    const found = [[""]];
    let quoted = false;
    const letters = text.trim().replace(/\r\n?/g, "\n");
    for (let i = 0; i < letters.length; i += 1) {
      const row = found[found.length - 1];
      const letter = letters[i];
      if (letter === '"' && quoted && letters[i + 1] === '"') {
        row[row.length - 1] += letter;
        i += 1;
      } else if (letter === '"') quoted = !quoted;
      else if (letter === mark && !quoted) row.push("");
      else if (letter === "\n" && !quoted) found.push([""]);
      else row[row.length - 1] += letter;
    }
    return found.map((row) => row.map((cell) => cell.trim())).filter((row) => row.some(Boolean));
  }

  function fromTable(text, words) {
    const [head, ...body] = rows(text);
    const names = head.map((name) => name.toLowerCase());
    const unknown = names.find((name) => !COLUMNS.includes(name));
    if (unknown !== undefined) throw new Error(`There is no column \u201c${unknown}\u201d; use ${COLUMNS.join(", ")}.`);
    if (!names.includes("item")) throw new Error("The table has no column \u201citem\u201d, the text of each item; add that column.");
    const records = body.map((row) => Object.fromEntries(COLUMNS.map((name) => [name, row[names.indexOf(name)] || ""])));
    const terms = (cell) => cell.split(";").map(line).filter(Boolean);
    const items = records.filter((one) => one.item).map((one, i) => {
      const reverse = one.reverse.toLowerCase();
      if (![...YES, ...NO].includes(reverse))
        throw new Error(`Item ${i + 1}: reverse is yes or no, not \u201c${one.reverse}\u201d.`);
      const parts = [one.premise, one.hypothesis, one.source, one.inverse];
      const template = { premise: one.premise, hypothesis: one.hypothesis, source: terms(one.source), inverse: terms(one.inverse) };
      return { text: one.item, scale: one.scale, key: YES.includes(reverse) ? -1 : 1, templates: parts.every(Boolean) ? [template] : [] };
    });
    for (const item of items) for (const one of item.templates) Object.assign(one, { text: item.text, words });
    const titles = [...new Set(items.map((one) => one.scale))];
    const scales = titles.map((title) => {
      const places = items.flatMap((one, i) => (one.scale === title ? [i] : []));
      return { title: title || "All items", places, keys: places.map((i) => items[i].key) };
    });
    return { language: "en", items, scales, words };
  }

  /* --- a questionnaire's file */

  function levels(given) {
    const all = list(given).flatMap((level) => list(level?.terms).map((word) => ({ word: line(word), weight: Number(level.weight) })));
    return all.sort((a, b) => a.weight - b.weight);
  }

  function fromFile(content) {
    if (!list(content?.items).length) throw new Error("The file has no items; begin them with \u201citems:\u201d.");
    if (list(content.categories).length) throw new Error("This questionnaire sorts answers into categories; the page scores scales only.");
    const items = content.items.map((item) => ({
      id: line(item?.id), text: line(item?.text), key: Number(item?.keying ?? 1),
      templates: list(item?.templates).map((one) => {
        const terms = one?.terms || item.terms;
        return {
          text: line(item.text), premise: line(one?.premise), hypothesis: line(one?.hypothesis),
          source: list(terms?.source).map(line), inverse: list(terms?.inverse).map(line),
          words: levels(item.intensifiers || content.intensifiers),
        };
      }),
    }));
    const ids = items.map((one) => one.id);
    const scales = list(content.scales).map((scale) => {
      const members = scale?.items === "all" ? ids : list(scale?.items).map(line);
      const lost = members.find((id) => !ids.includes(id));
      if (lost !== undefined) throw new Error(`The scale ${line(scale.title)} names \u201c${lost}\u201d, which is not an item.`);
      const places = ids.flatMap((id, i) => (members.includes(id) ? [i] : []));
      const reverse = list(scale.reverse).map(line);
      return { title: line(scale.title), places, keys: places.map((i) => (reverse.includes(ids[i]) ? -1 : 1) * items[i].key) };
    });
    const whole = { title: "All items", places: items.map((_, i) => i), keys: items.map((one) => one.key) };
    return { language: line(content.language || "en"), items, scales: scales.length ? scales : [whole] };
  }

  /* What is typed as a questionnaire; `parser` gives what reads YAML, which is loaded only when it is needed. */
  async function read(text, words, parser) {
    if (!text.trim()) throw new Error("Paste a questionnaire, as CSV with a column \u201citem\u201d or as YAML.");
    const sorted = window.askScore.read({ words, premise: "", hypothesis: "", text: "", source: "", inverse: "" }).words;
    if (!/^items\s*:/m.test(text)) return { table: true, ...fromTable(text, sorted) };
    const yaml = await parser();
    try {
      return fromFile(yaml.load(text));
    } catch (error) {
      throw new Error(error.reason ? `The YAML cannot be read: ${error.reason}, line ${error.mark.line + 1}.` : error.message);
    }
  }

  /* --- what may not be asked, and what is asked */

  const asked = (whole) => whole.items.flatMap((item) => item.templates);
  const size = (one) => (one.source.length + one.inverse.length) * one.words.length;
  const unasked = (whole) => whole.items.flatMap((item, i) => (item.templates.length ? [] : [i]));

  function mistakes(whole) {
    if (!asked(whole).length) return ["No item has prompts; give each source, inverse, premise and hypothesis."];
    const found = whole.items.flatMap((item, i) =>
      item.templates.flatMap((one) => window.askScore.mistakes(one).map((text) => `Item ${i + 1}: ${text}`)),
    );
    const pairs = sum(asked(whole).map(size));
    if (pairs > MOST) found.push(`${pairs} pairs of sentences are too many for this page; take out items, terms or words until there are ${MOST} or fewer.`);
    if (whole.items.some((item) => ![1, -1].includes(item.key))) found.push("keying is 1, or \u22121 where agreement lowers the score.");
    return [...new Set(found)];
  }

  const prompts = (whole) => asked(whole).flatMap((one) => window.askScore.prompts(one));

  /* One list of values for all prompts, as one list for each template of each item. */
  function byTemplate(whole, values) {
    let at = 0;
    return whole.items.map((item) => item.templates.map((one) => values.slice(at, (at += size(one)))));
  }

  /* --- scores */

  function scores(whole, values, t) {
    const S = window.askScore;
    const parts = byTemplate(whole, values);
    const items = whole.items.map((item, i) => {
      const each = item.templates.map((one, j) => S.score(one, S.tabled(one, parts[i][j]), t));
      const [low, high] = S.interval(each.flatMap((one) => one.each), t);
      return { score: mean(each.map((one) => one.score)), low, high, decided: mean(each.map((one) => one.decided)) };
    });
    const scales = whole.scales.map((scale) => {
      const keyed = scale.places.flatMap((i, j) => (whole.items[i].templates.length ? [scale.keys[j] * items[i].score] : []));
      const [low, high] = S.interval(keyed, t);
      return { title: scale.title, items: keyed.length, score: mean(keyed), low, high };
    });
    return { items, scales };
  }

  /* An untrained head's score of a template is, to first order, the product of its weights with this vector. */
  function contrast(one, vectors) {
    const weights = one.words.map(({ weight }) => weight);
    const terms = [...one.source.map(() => 1), ...one.inverse.map(() => 0)];
    const scale = 3 / (one.source.length * weights.length ** 2);
    const found = new Float64Array(vectors[0].length);
    vectors.forEach((vector, row) => {
      const term = terms[Math.floor(row / weights.length)] - mean(terms);
      const factor = scale * term * (weights[row % weights.length] - mean(weights));
      vector.forEach((x, k) => (found[k] += factor * x));
    });
    return found;
  }

  /* Cronbach's alpha of untrained heads, from the covariance that these vectors give: psychometrics.nulls.respondents.kernel. */
  function alphas(whole, vectors) {
    const parts = byTemplate(whole, vectors);
    const items = whole.items.map((item, i) => {
      const each = item.templates.map((one, j) => contrast(one, parts[i][j]));
      return each.length ? each[0].map((_, k) => mean(each.map((one) => one[k]))) : null;
    });
    return whole.scales.map((scale) => {
      const keyed = scale.places.flatMap((i, j) => (items[i] ? [items[i].map((x) => scale.keys[j] * x)] : []));
      if (keyed.length < 2) return NaN;
      const square = (vector) => sum(Array.from(vector, (x) => x * x));
      const total = keyed[0].map((_, k) => sum(keyed.map((one) => one[k])));
      return (keyed.length / (keyed.length - 1)) * (1 - sum(keyed.map(square)) / square(total));
    });
  }

  /* A table as the file that every command of the package takes. */
  function yaml(whole) {
    const S = window.askScore;
    const id = S.fileName(whole.items[0], "questionnaire");
    const names = (places) => places.map((i) => `${id}-${i + 1}`).join(", ");
    const scales = whole.scales.map(({ title, places, keys }, i) => {
      const reverse = names(places.filter((_, j) => keys[j] < 0));
      const more = reverse ? `, reverse: [${reverse}]` : "";
      return `  - {id: scale_${i + 1}, title: ${JSON.stringify(title)}, items: [${names(places)}]${more}}`;
    });
    const items = whole.items.map((item, i) => S.yamlItem(`${id}-${i + 1}`, item.text, item.templates));
    return { name: `${id}.yaml`, text: S.yamlFile(id, "My questionnaire", "My questionnaire", whole.words, scales, items) };
  }

  return { read, mistakes, unasked, prompts, scores, alphas, yaml };
})();
