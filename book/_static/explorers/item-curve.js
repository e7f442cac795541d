/* Probability and information of an item, as psychometrics.measures.irt. */
window.explorerScripts = window.explorerScripts || {};
window.explorerScripts["item-curve"] = function (body, data, tools) {
  "use strict";
  const { svg, shown, value } = tools;
  const preset = tools.select("Start from", data.presets.map((one) => one.name), chosen, 0);
  const b = tools.slider("Difficulty b", { min: -4, max: 4, step: 0.05, value: 0 }, 2, update);
  const a = tools.slider("Discrimination a", { min: -2, max: 4, step: 0.05, value: 1 }, 2, update);
  const c = tools.slider("Guessing c", { min: 0, max: 0.6, step: 0.01, value: 0 }, 2, update);
  const theta = tools.slider("Ability \u03b8", { min: -4, max: 4, step: 0.05, value: 0 }, 2, update);
  const said = tools.sentence();
  const above = tools.plot(260, drawProbability);
  const below = tools.plot(220, drawInformation);
  body.append(tools.panel(preset, b, a, c, theta), said.element, above.element, below.element);

  function probability(x) {
    return c.value() + (1 - c.value()) / (1 + Math.exp(-a.value() * (x - b.value())));
  }

  function information(x) {
    const p = probability(x);
    const found = a.value() ** 2 * ((1 - p) / p) * ((p - c.value()) / (1 - c.value())) ** 2;
    return Number.isFinite(found) ? found : 0;
  }

  const grid = Array.from({ length: 801 }, (_, i) => -4 + i / 100);

  function chosen() {
    const one = data.presets[preset.value()];
    b.set(one.difficulty);
    a.set(one.discrimination);
    c.set(one.guessing);
    update();
  }

  function update() {
    const x = theta.value();
    const most = grid.reduce((best, y) => (information(y) > information(best) ? y : best), grid[0]);
    const parts = [
      "At ability ",
      value("theta", x, 2),
      " the probability to solve it is ",
      value("probability", probability(x), 3),
      " and its information ",
      value("information", information(x), 3),
      ". ",
    ];
    if (a.value() === 0) parts.push("With discrimination 0 it says nothing about anybody.");
    else
      parts.push(
        "It says most about abilities near ",
        value("most", most, 2),
        Math.abs(most) >= 4 ? " (the end of the axis or beyond)" : "",
        ", with an information of ",
        value("peak", information(most), 3),
        ".",
        a.value() < 0 ? " Its discrimination is negative: the able miss it more often." : "",
      );
    said.tell(parts);
    above.draw();
    below.draw();
  }

  function curve(root, width, height, of, range, names) {
    const area = { left: 44, right: width - 12, top: 26, bottom: height - 42 };
    const { X, Y } = tools.frame(root, area, [-4, 4], range, names);
    root.append(
      svg("path", { d: tools.line(grid.map((x) => [X(x), Y(of(x))])), class: "explorer-line" }),
      svg("line", { x1: X(theta.value()), x2: X(theta.value()), y1: area.top, y2: area.bottom, class: "explorer-guide" }),
      svg("circle", { cx: X(theta.value()), cy: Y(of(theta.value())), r: 6, class: "explorer-dot" }),
    );
    return { X, Y, area };
  }

  function drawProbability(root, width, height) {
    const { X, Y, area } = curve(root, width, height, probability, [0, 1], {
      x: "ability (standard deviations of the population)",
      y: "probability to solve it",
    });
    root.append(
      svg("line", { x1: X(b.value()), x2: X(b.value()), y1: Y(probability(b.value())), y2: area.bottom, class: "explorer-guide" }),
    );
    tools.label(
      root,
      `Item curve: probability ${shown(probability(-4), 2)} at ability \u22124, ` +
        `${shown(probability(b.value()), 2)} at its difficulty ${shown(b.value(), 2)}, ${shown(probability(4), 2)} at 4.`,
    );
  }

  function drawInformation(root, width, height) {
    const most = Math.max(...grid.map(information), 0.25);
    curve(root, width, height, information, [0, most * 1.05], {
      x: "ability (standard deviations of the population)",
      y: "information",
    });
    tools.label(root, `Information of the item: ${shown(information(theta.value()), 2)} at ability ${shown(theta.value(), 2)}.`);
  }

  chosen();
};
