/* Results without training: the kernel's item correlations, alpha and correlations of scales. */
window.explorerScripts = window.explorerScripts || {};
window.explorerScripts.kernel = function (body, data, tools) {
  "use strict";
  const { html, svg, shown, value } = tools;
  const questionnaire = tools.select("Questionnaire", data.questionnaires.map((one) => one.name), tell, 0);
  const base = tools.select("Base and depth", data.bases.map((one) => one.name), tell, data.first);
  const said = tools.sentence();
  const heat = tools.plot((width) => Math.min(width, 420) + 22, drawHeat);
  const places = tools.plot(() => 30 * rows().length + 66, drawPlaces);
  const numbers = html("div", {});
  const matrix = html("details", {});
  body.append(
    tools.panel(questionnaire, base), said.element, heat.element, matrix, places.element, numbers,
  );
  const chosen = () => data.questionnaires[questionnaire.value()];
  const on = () => data.bases[base.value()];

  /* The upper triangle by rows, as a full matrix. */
  function correlations() {
    const size = chosen().items.length;
    const upper = on().r[questionnaire.value()];
    const found = Array.from({ length: size }, (_, i) => Array(size).fill(1));
    let at = 0;
    for (let i = 0; i < size; i += 1) {
      for (let j = i + 1; j < size; j += 1, at += 1) found[i][j] = found[j][i] = upper[at];
    }
    return found;
  }

  function rows() {
    return chosen().rows.map((k) => ({ name: data.statistics[k], values: on().values[k] }));
  }

  function tell() {
    const [one] = rows();
    const many = on().members >= 3;
    const among = many ? `as many untrained heads (${on().members})` : "24 untrained heads";
    said.tell([
      `Without training, ${one.name} is `, value("untrained", one.values[0], 2),
      ` on ${on().name}; in 95 % of samples of ${among} it lies between `, value("low", one.values[1], 2),
      " and ", value("high", one.values[2], 2), ". ",
      ...(many
        ? [`The ${on().members} trained members have `, value("trained", one.values[3], 2), "."]
        : ["This book has too few trained members of this depth to compare."]),
    ]);
    const r = correlations();
    matrix.replaceChildren(
      html("summary", { text: "The correlations as a table" }),
      tools.table(
        `Item correlations of ${chosen().name} on ${on().name}`,
        ["item", ...r.map((_, i) => String(i + 1))],
        r.map((line, i) => ({ name: `${i + 1} ${chosen().items[i]}`, values: line })),
        { digits: 2 },
      ),
    );
    numbers.replaceChildren(
      tools.table(
        `${chosen().name} on ${on().name}; low and high: 95 % of samples of ${among}`,
        ["statistic", "untrained", "low", "high", ...(many ? ["trained"] : [])],
        rows().map((row) => ({ name: row.name, values: row.values.slice(0, many ? 4 : 3) })),
        { digits: 2 },
      ),
    );
    heat.draw();
    places.draw();
  }

  function drawHeat(root, width) {
    const r = correlations();
    const [left, top] = [26, 20];
    const cell = (Math.min(width, 420) - left) / r.length;
    const write = (x, y, text) =>
      root.append(svg("text", { x, y, class: "explorer-label", "text-anchor": "middle", text }));
    const every = cell < 18 ? 2 : 1;
    r.forEach((line, i) => {
      if (i % every === 0) {
        write(left + cell * (i + 0.5), top - 6, i + 1);
        write(left / 2, top + cell * (i + 0.5) + 4, i + 1);
      }
      line.forEach((number, j) => {
        const place = { x: left + cell * j, y: top + cell * i, width: cell - 1, height: cell - 1 };
        const kind = number < 0 ? "explorer-below" : "explorer-above";
        const box = svg("rect", { ...place, class: kind, "fill-opacity": Math.min(1, Math.abs(number)) });
        box.append(svg("title", { text: `items ${i + 1} and ${j + 1}: ${shown(number, 2)}` }));
        root.append(box);
        if (cell >= 36) write(place.x + cell / 2, place.y + cell / 2 + 4, shown(number, 2));
      });
    });
    const y = top + cell * r.length + 6;
    [-1, -0.5, 0.25, 0.5, 1].forEach((number, i) => {
      const kind = number < 0 ? "explorer-below" : "explorer-above";
      const x = left + i * 62;
      root.append(svg("rect", { x, y, width: 14, height: 12, class: kind, "fill-opacity": Math.abs(number) }));
      root.append(svg("text", { x: x + 18, y: y + 11, class: "explorer-label", text: shown(number, 2) }));
    });
    const all = on().r[questionnaire.value()];
    tools.label(
      root,
      `Heat map of ${all.length} item correlations of ${chosen().name} on ${on().name}: from ` +
        `${shown(Math.min(...all), 2)} to ${shown(Math.max(...all), 2)}, median ` +
        `${shown(tools.quantile(all, 0.5), 2)}, ${all.filter((x) => x < 0).length} below zero. ` +
        "The table below it has each of them.",
    );
  }

  function drawPlaces(root, width) {
    const all = rows();
    const area = { left: 12, right: width - 12, top: 10, bottom: 30 * all.length + 26 };
    const least = Math.floor(Math.min(-1, ...all.map((row) => row.values[1])) * 2) / 2;
    const low = Math.max(least, -2);
    const { X, write } = tools.frame(
      root, area, [low, 1], [0, 1],
      { x: "grey: untrained, with 95 %; filled: trained" }, { yticks: false },
    );
    all.forEach((row, i) => {
      const y = area.top + 30 * i + 22;
      const [centre, from, to, trained] = row.values.map((x) => Math.max(low, x));
      root.append(svg("line", { x1: X(from), x2: X(to), y1: y, y2: y, class: "explorer-range" }));
      root.append(svg("line", { x1: X(centre), x2: X(centre), y1: y - 6, y2: y + 6, class: "explorer-tick" }));
      if (Number.isFinite(trained) && on().members >= 3) {
        root.append(svg("circle", { cx: X(trained), cy: y, r: 5, class: "explorer-point" }));
      }
      write([area.left + 4, y - 8], row.name, {});
    });
    tools.label(
      root,
      `Places of ${all.length} statistics of ${chosen().name} on ${on().name}: untrained with ` +
        "intervals, and trained members. The table below has the numbers.",
    );
  }

  tell();
};
