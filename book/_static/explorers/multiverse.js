/* The specification curve with the choices behind each correlation. */
window.explorerScripts = window.explorerScripts || {};
window.explorerScripts.multiverse = function (body, data, tools) {
  "use strict";
  const { html, svg, shown, value } = tools;
  const pair = tools.select("Correlation of", data.pairs.map((one) => one.name), update, 0);
  const null_ = tools.select("Beside it, median of", data.nulls.map((one) => one.name), update, 0);
  const filters = data.choices.map((one) => tools.checks(one.name, one.values, update));
  const all = tools.button("All choices", () => {
    filters.forEach((filter, i) => filter.set(data.choices[i].values.map(() => true)));
    update();
  });
  const said = tools.sentence();
  const rows = data.choices.reduce((sum, one) => sum + one.values.length, 0);
  const picture = tools.plot(() => 300 + rows * 17 + data.choices.length * 20, draw);
  body.append(tools.panel(pair, null_, ...filters, all), said.element, picture.element);

  function kept() {
    const allowed = filters.map((filter, i) =>
      new Set(data.choices[i].values.filter((_, j) => filter.all()[j])),
    );
    return data.pairs[pair.value()].rows
      .filter((row) => data.worlds[row].every((chosen, i) => allowed[i].has(chosen)))
      .filter((row) => Number.isFinite(data.r[row]))
      .sort((a, b) => data.r[a] - data.r[b]);
  }

  function share(values, sign) {
    return values.filter((r) => r * sign > 0).length / values.length;
  }

  function update() {
    const one = data.pairs[pair.value()];
    const left = kept();
    const ours = left.map((row) => data.r[row]);
    const other = left.map((row) => data.nulls[null_.value()].r[row]);
    const direction = one.sign > 0 ? "positive" : "negative";
    if (!left.length) said.tell(["No specification is left: tick one value of each choice."]);
    else
      said.tell([
        value("number", left.length, 0),
        ` of ${one.rows.length} specifications: median r `,
        value("median", tools.quantile(ours, 0.5), 2, true),
        ", from ",
        value("least", ours[0], 2, true),
        " to ",
        value("most", ours[ours.length - 1], 2, true),
        `; ${direction}, as in people, in `,
        value("share", 100 * share(ours, one.sign), 0),
        ` %. Populations of ${data.nulls[null_.value()].name}: median `,
        value("null", tools.quantile(other, 0.5), 2, true),
        `, ${direction} in `,
        value("null-share", 100 * share(other, one.sign), 0),
        ` %. Published: ${shown(one.published, 2, true)}.`,
      ]);
    picture.draw();
  }

  function draw(root, width) {
    const one = data.pairs[pair.value()];
    const left = kept();
    const area = { left: 96, right: width - 10, top: 44, bottom: 250 };
    const range = [0.5, Math.max(left.length, 1) + 0.5];
    const { X, Y, write } = tools.frame(root, area, range, [-1, 1], { y: "" }, { xticks: false });
    write([2, 14], "Pearson\u2019s r, from the lowest", { "font-weight": 700 });
    const legend = [["explorer-point", "our population"], ["explorer-point explorer-null", "the null"]];
    legend.forEach(([kind, name], i) => {
      root.append(svg("circle", { cx: 102 + i * 130, cy: 28, r: 4, class: kind }));
      write([112 + i * 130, 32], name, {});
    });
    root.append(
      svg("line", { x1: area.left, x2: area.right, y1: Y(0), y2: Y(0), class: "explorer-axis" }),
      svg("line", { x1: area.left, x2: area.right, y1: Y(one.published), y2: Y(one.published), class: "explorer-guide" }),
    );
    write([area.right, Y(one.published) + 16], "published", { "text-anchor": "end" });
    const size = Math.max(1.5, Math.min(4, (area.right - area.left) / left.length / 2));
    left.forEach((row, i) => {
      const r = data.nulls[null_.value()].r[row];
      if (Number.isFinite(r)) root.append(svg("circle", { cx: X(i + 1), cy: Y(r), r: size, class: "explorer-point explorer-null" }));
      root.append(svg("circle", { cx: X(i + 1), cy: Y(data.r[row]), r: size, class: "explorer-point" }));
    });
    let y = 286;
    data.choices.forEach((choice, c) => {
      write([2, y], choice.name, { "font-weight": 700 });
      choice.values.forEach((name) => {
        y += 17;
        write([area.left - 6, y], name, { "text-anchor": "end" });
        left.forEach((row, i) => {
          if (data.worlds[row][c] === name)
            root.append(svg("rect", { x: X(i + 1) - size * 0.6, y: y - 9, width: size * 1.2, height: 10, class: "explorer-rug" }));
        });
      });
      y += 20;
    });
    tools.label(
      root,
      `${left.length} correlations of ${one.name} in order of size, with the choices behind each below.`,
    );
  }

  update();
};
