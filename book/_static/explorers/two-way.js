/* Raw scores, the two steps of the normalisation, and the score of an item, as psychometrics.measures.normalisation and .scoring. */
window.explorerScripts = window.explorerScripts || {};
window.explorerScripts["two-way"] = function (body, data, tools) {
  "use strict";
  const { html, shown, value } = tools;
  const words = data.intensifiers.length;
  const SMALLEST = 1e-12;
  let start = 0;
  data.items.forEach((item) =>
    item.templates.forEach((template) => {
      template.start = start;
      start += template.terms.length * words;
    }),
  );
  const answers = data.answers.map((pair) => pair.map((text) => tools.unpacked(text, start)));

  function raw(template, respondent, contrast) {
    const [entailment, contradiction] = answers[respondent];
    return template.terms.map((_, i) =>
      data.intensifiers.map((_, j) => {
        const place = template.start + i * words + j;
        const [e, c] = [entailment[place], contradiction[place]];
        return !contrast ? e : e + c === 0 ? 0.5 : e / (e + c);
      }),
    );
  }

  function overTerms(scores, temperature) {
    const logs = scores.map((row) => row.map((p) => Math.log(Math.max(p, SMALLEST)) / temperature));
    return logs.map((row) =>
      row.map((x, j) => {
        const most = Math.max(...logs.map((other) => other[j]));
        const total = logs.reduce((sum, other) => sum + Math.exp(other[j] - most), 0);
        return Math.exp(x - most) / total;
      }),
    );
  }

  function overWords(shares) {
    return shares.map((row) => {
      const total = row.reduce((sum, x) => sum + x, 0);
      return row.map((x) => x / total);
    });
  }

  function score(template, pss) {
    const rows = pss.filter((_, i) => template.polarity[i] === 1);
    const sum = rows.flatMap((row) => row.map((x, j) => x * data.weights[j]));
    return sum.reduce((a, b) => a + b, 0) / (rows.length * words);
  }

  const item = tools.select("Item", data.items.map((one) => one.text), chosen, data.first);
  const template = tools.select("Template", [], update);
  const respondent = tools.select("Respondent", data.respondents, update, 0);
  const definition = tools.radios(
    "Raw score",
    ["entailment: P(e)", "contrast: P(e) / (P(e) + P(c))"],
    update,
  );
  const temperature = tools.slider(
    "Temperature \u03c4", { min: 0.1, max: 5, step: 0.1, value: 1 }, 1, update,
  );
  const said = tools.sentence();
  const prompt = html("p", { class: "explorer-prompt" });
  const tables = html("div", {});
  body.append(
    tools.panel(item, respondent, template, definition, temperature),
    prompt,
    said.element,
    tables,
  );

  function chosen() {
    const number = data.items[item.value()].templates.length;
    const input = template.element.querySelector("select");
    input.replaceChildren(
      ...Array.from({ length: number }, (_, i) => html("option", { value: i, text: `${i + 1} of ${number}` })),
    );
    update();
  }

  function update() {
    const one = data.items[item.value()];
    const looked = one.templates[template.value()];
    const contrast = definition.value() === 1;
    const steps = one.templates.map((each) => {
      const scores = raw(each, respondent.value(), contrast);
      const shares = overTerms(scores, temperature.value());
      return { scores, shares, pss: overWords(shares) };
    });
    const each = one.templates.map((other, i) => score(other, steps[i].pss));
    const here = steps[template.value()];
    const mean = each.reduce((a, b) => a + b, 0) / each.length;
    prompt.textContent =
      `\u201c${looked.premise.replace("{term}", "[term]").replace("{intensifier}", "[how often]")}\u201d ` +
      `Does it follow that \u201c${looked.hypothesis.replace("{intensifier}", "[how often]").replace("{term}", "[term]")}\u201d?`;
    said.tell([
      "Score of the item: ",
      value("item", mean, 3, true),
      ", the mean of its templates; of this template: ",
      value("template", each[template.value()], 3, true),
      `. An even spread over the ${words} words gives 0, and the score lies between ` +
        `${shown(Math.min(...data.weights) / words, 1, true)} and ` +
        `${shown(Math.max(...data.weights) / words, 1, true)}.`,
    ]);
    const heads = ["term", ...data.intensifiers];
    const named = (rows) =>
      rows.map((values, i) => ({
        name: `${looked.terms[i]} (${looked.polarity[i] === 1 ? "S+" : "S\u2212"})`,
        values,
      }));
    const greatest = (rows) => Math.max(...rows.flat());
    const draw = (caption, rows) =>
      tools.table(caption, heads, named(rows), { digits: 3, heat: (x) => x / greatest(rows) });
    tables.replaceChildren(
      draw("Raw scores. Whole columns are high: some words go with anything.", here.scores),
      draw("Step one: each column divided by its sum. What a word has in common over the terms is gone.", here.shares),
      draw("Step two: each row divided by its sum. This is the PSS of each term.", here.pss),
    );
  }

  chosen();
};
