/* Populations that know nothing as histograms, and where a value lies among them. */
window.explorerScripts = window.explorerScripts || {};
window.explorerScripts.null = function (body, data, tools) {
  "use strict";
  const { html, svg, shown, value } = tools;
  const statistic = tools.select("Statistic", data.statistics.map((one) => one.name), chosen, 0);
  const moved = tools.slider(
    "Value", { min: -1, max: 1, step: 0.001, value: 0 }, 3, update,
  );
  const back = tools.button("Back to our population", chosen);
  const said = tools.sentence();
  const list = html("div", {});
  const picture = tools.plot(() => 90 * data.kinds.length + 60, draw);
  body.append(tools.panel(statistic, moved, back), said.element, picture.element, list);
  const one = () => data.statistics[statistic.value()];
  /* The slider's steps are coarse: our population's own value is kept in full until it is moved. */
  let exact = null;
  const observed = () => (exact === null ? moved.value() : exact);

  function extreme(draws, x) {
    const there = draws.filter(Number.isFinite);
    return there.filter((y) => (x >= 0 ? y >= x : y <= x)).length / there.length;
  }

  function span() {
    const all = [...one().draws.flat(), one().observed].filter(Number.isFinite);
    return [Math.floor(Math.min(...all) * 10 - 0.5) / 10, Math.min(1, Math.ceil(Math.max(...all) * 10 + 0.5) / 10)];
  }

  function chosen() {
    const [low, high] = span();
    moved.set(one().observed, { min: low, max: high });
    exact = one().observed;
    tell();
  }

  function update() {
    exact = null;
    tell();
  }

  function tell() {
    const x = observed();
    const ours = exact !== null;
    said.tell([
      ours ? `Our population of ${one().size} respondents has ` : `A population with `,
      value("observed", x, 3),
      ours ? "." : ` (ours has ${shown(one().observed, 3)}).`,
      " The table says what share of populations of as many respondents that know nothing has as much.",
    ]);
    const rows = data.kinds.map((name, i) => {
      const draws = one().draws[i];
      const at = [0.025, 0.5, 0.975].map((share) => tools.quantile(draws, share));
      return { name, values: [...at, extreme(draws, x)] };
    });
    list.replaceChildren(
      tools.table(
        `${one().name}: ${one().draws[0].length} populations of each kind`,
        ["null respondents", "low (2.5 %)", "median", "high (97.5 %)", "share as extreme"],
        rows,
        { digits: 3 },
      ),
    );
    picture.draw();
  }

  function draw(root, width) {
    const [low, high] = span();
    const bins = 50;
    const x = observed();
    data.kinds.forEach((kind, i) => {
      const area = { left: 12, right: width - 12, top: 90 * i + 26, bottom: 90 * i + 84 };
      const last = i === data.kinds.length - 1;
      const draws = one().draws[i].filter(Number.isFinite);
      const counts = Array(bins).fill(0);
      draws.forEach((y) => (counts[Math.min(bins - 1, Math.floor(((y - low) / (high - low)) * bins))] += 1));
      const top = Math.max(...counts, 1);
      const { X, Y, write } = tools.frame(root, area, [low, high], [0, top], last ? { x: one().name } : {}, {
        xticks: last,
        yticks: false,
      });
      counts.forEach((count, j) => {
        if (!count) return;
        const from = X(low + ((high - low) * j) / bins);
        const far = low + ((high - low) * (j + 0.5)) / bins;
        root.append(
          svg("rect", {
            x: from,
            y: Y(count),
            width: (area.right - area.left) / bins - 0.5,
            height: area.bottom - Y(count),
            class: (x >= 0 ? far >= x : far <= x) ? "explorer-bar explorer-far" : "explorer-bar",
          }),
        );
      });
      write([area.left + 4, area.top - 6], kind, {});
      root.append(
        svg("line", { x1: X(x), x2: X(x), y1: area.top, y2: area.bottom, class: "explorer-mark" }),
      );
    });
    tools.label(
      root,
      `Histograms of ${one().name} in populations of null respondents; a line marks ${shown(x, 3)}.`,
    );
  }

  chosen();
};
