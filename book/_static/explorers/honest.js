/* HONEST of the published models from counts of hurtful completions, as psychometrics.measures.beliefs. */
window.explorerScripts = window.explorerScripts || {};
window.explorerScripts.honest = function (body, data, tools) {
  "use strict";
  const { html, svg, shown, value } = tools;
  const RANKS = 100;
  const groups = data.sizes.length;
  const models = data.models.length;
  const size = data.scorings.length * groups * models * RANKS;
  const counts = tools.unpacked(data.counts, size, "counts");
  const count = (s, g, m, k) => counts[((s * groups + g) * models + m) * RANKS + k];
  /* Sets of groups of templates; the shares of several sets are averaged, as the paper does. */
  const ABOUT = [
    ["both subsets (as in the paper's table)", [[0, 1, 2], [3]]],
    ["the binary subset", [[0, 1, 2]]],
    ["the queer subset", [[3]]],
    ["women (binary subset)", [[0]]],
    ["men (binary subset)", [[1]]],
  ];
  const PUBLISHED = 0;

  const scoring = tools.select("Scoring", data.scorings, update, 0);
  const about = tools.select("Templates about", ABOUT.map((one) => one[0]), update, 0);
  const rank = tools.slider("Rank k", { min: 1, max: RANKS, step: 1, value: RANKS }, 0, update);
  const how = tools.radios("Completions", ["the first k together (mean over ranks)", "the k-th alone"], update);
  const model = tools.select("Model", data.models, update, data.first);
  const said = tools.sentence();
  const bars = tools.plot((width) => models * 20 + 56, drawBars);
  const curve = tools.plot(250, drawCurve);
  body.append(
    tools.panel(scoring, about, how, rank, model),
    said.element,
    bars.element,
    curve.element,
  );

  /* One completion in small: emoji and broken characters alone stand for all that ASCII cannot write. */
  const own = tools.text("A completion", "kind \u{1f642}", judge);
  const lemmas = tools.text("A lexicon, with commas", "thief, \u{1f46e}", judge);
  const verdict = tools.sentence();
  body.append(
    html("p", { class: "explorer-part", text: "Is a completion of your own hurtful?" }),
    tools.panel(own, lemmas),
    verdict.element,
  );

  function written(word) {
    const plain = word.replace(/[\p{Extended_Pictographic}\u200d\ufe0f\ufffd]/gu, "");
    return plain.normalize("NFKD").replace(/\p{M}/gu, "");
  }

  function judge() {
    const words = own.value().replace(/[!-/:-@[-`{-~]/g, " ").split(/\s+/).filter((word) => word);
    const lexicon = lemmas.value().split(",").map((lemma) => written(lemma.trim()));
    const hit = (known) => words.map(written).find((word) => known.includes(word));
    const said = (found, name) => [
      `By ${name}: `,
      html("strong", { "data-name": name, text: found === undefined ? "not hurtful" : "hurtful" }),
      found === undefined ? ". " : found === "" ? ", since an empty word is in the lexicon. " : ` (${found}). `,
    ];
    verdict.tell([
      ...said(hit(lexicon), "words, in ASCII"),
      ...said(hit(lexicon.filter((lemma) => lemma)), "words in the lexicon"),
    ]);
  }

  function at(s, m, k) {
    const sets = ABOUT[about.value()][1];
    const shares = sets.map((set) => {
      const hits = set.reduce((sum, g) => sum + count(s, g, m, k), 0);
      return hits / set.reduce((sum, g) => sum + data.sizes[g], 0);
    });
    return shares.reduce((a, b) => a + b, 0) / shares.length;
  }

  function honest(s, m) {
    const k = rank.value();
    if (how.value() === 1) return at(s, m, k - 1);
    let sum = 0;
    for (let i = 0; i < k; i += 1) sum += at(s, m, i);
    return sum / k;
  }

  const order = (s) =>
    data.models.map((_, m) => m).sort((a, b) => honest(s, b) - honest(s, a) || a - b);

  function update() {
    const [s, m] = [scoring.value(), model.value()];
    const place = order(s).indexOf(m) + 1;
    const parts = [
      `${data.models[m]}, ${data.scorings[s]}: HONEST `,
      value("honest", honest(s, m), 3),
      `, number ${place} of ${models}`,
    ];
    if (s !== PUBLISHED)
      parts.push(
        `; ${data.scorings[PUBLISHED]}: `,
        value("published", honest(PUBLISHED, m), 3),
        `, number ${order(PUBLISHED).indexOf(m) + 1}`,
      );
    said.tell([...parts, "."]);
    bars.draw();
    curve.draw();
  }

  function drawBars(root, width, height) {
    const s = scoring.value();
    const most = Math.max(...data.models.flatMap((_, m) => [honest(s, m), honest(PUBLISHED, m)]), 0.01);
    const area = { left: 128, right: width - 44, top: 8, bottom: height - 44 };
    const { X, write } = tools.frame(root, area, [0, most * 1.03], [0, models], {
      x: "HONEST (share of completions)",
    }, { yticks: false });
    order(s).forEach((m, i) => {
      const y = area.top + (i + 0.5) * ((area.bottom - area.top) / models);
      const chosen = m === model.value();
      root.append(
        svg("rect", { x: X(0), y: y - 6, width: Math.max(0, X(honest(s, m)) - X(0)), height: 12, class: chosen ? "explorer-bar explorer-far" : "explorer-bar" }),
      );
      if (s !== PUBLISHED) {
        const p = X(honest(PUBLISHED, m));
        root.append(svg("line", { x1: p, x2: p, y1: y - 7, y2: y + 7, class: "explorer-tick" }));
      }
      write([area.left - 6, y + 4], data.models[m], { "text-anchor": "end", ...(chosen ? { "font-weight": 700 } : {}) });
      write([X(Math.max(honest(s, m), s === PUBLISHED ? 0 : honest(PUBLISHED, m))) + 5, y + 4], shown(honest(s, m), 3), {});
    });
    tools.label(
      root,
      `Bars of HONEST for ${models} models, ${data.scorings[s]}, highest first: ` +
        order(s).slice(0, 3).map((m) => `${data.models[m]} ${shown(honest(s, m), 3)}`).join(", ") +
        ", and so on." + (s === PUBLISHED ? "" : " A tick marks the score as published."),
    );
  }

  function drawCurve(root, width, height) {
    const [s, m] = [scoring.value(), model.value()];
    const area = { left: 48, right: width - 12, top: 44, bottom: height - 42 };
    const lines = [s, PUBLISHED].map((one) => Array.from({ length: RANKS }, (_, k) => at(one, m, k)));
    const most = Math.max(...lines.flat(), 0.01);
    const { X, Y, write } = tools.frame(root, area, [1, RANKS], [0, most * 1.05], {
      x: "rank of the completion",
    });
    write([2, 14], `${data.models[m]}: HONEST at each rank`, { "font-weight": 700 });
    if (s !== PUBLISHED) {
      root.append(svg("path", { d: tools.line(lines[1].map((y, k) => [X(k + 1), Y(y)])), class: "explorer-line explorer-second" }));
    }
    root.append(svg("path", { d: tools.line(lines[0].map((y, k) => [X(k + 1), Y(y)])), class: "explorer-line" }));
    root.append(svg("line", { x1: 48, x2: 70, y1: 28, y2: 28, class: "explorer-line" }));
    write([75, 32], data.scorings[s], {});
    if (s !== PUBLISHED) {
      const from = 90 + 7.2 * data.scorings[s].length;
      root.append(svg("line", { x1: from, x2: from + 22, y1: 28, y2: 28, class: "explorer-line explorer-second" }));
      write([from + 27, 32], data.scorings[PUBLISHED], {});
    }
    root.append(svg("line", { x1: X(rank.value()), x2: X(rank.value()), y1: area.top, y2: area.bottom, class: "explorer-guide" }));
    tools.label(
      root,
      `HONEST of ${data.models[m]} at ranks 1 to ${RANKS}: ${shown(lines[0][0], 3)} at rank 1, ` +
        `${shown(lines[0][RANKS - 1], 3)} at rank ${RANKS}, ${data.scorings[s]}.`,
    );
  }

  update();
  judge();
};
