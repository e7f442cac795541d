/* What the explorers share: controls with labels, tables, plots that fit the page's width. */
(function () {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const FAILURE =
    "This box could not be drawn, because its data or its script is damaged or missing. Reload the " +
    "page; if this message stays, build the book again. The browser's console shows the error.";

  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name === "text") element.textContent = value;
      else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else element.setAttribute(name, value);
    }
    for (const child of children) element.append(child);
    return element;
  }

  function html(tag, attributes, ...children) {
    return fill(document.createElement(tag), attributes, children);
  }

  function svg(tag, attributes, ...children) {
    return fill(document.createElementNS(SVG, tag), attributes, children);
  }

  /* A number as the book writes it: fixed digits, a true minus sign. */
  function shown(number, digits, sign) {
    if (!Number.isFinite(number)) return "undefined";
    const text = Math.abs(number).toFixed(digits);
    const negative = number < 0 && Number(text) !== 0;
    return (negative ? "\u2212" : sign && Number(text) !== 0 ? "+" : "") + text;
  }

  /* The numbers behind base64 text; as many as there should be, or an error. */
  function unpacked(text, length, kind) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const size = kind === "counts" ? 2 : 4;
    if (bytes.length !== length * size)
      throw new Error(`${bytes.length} bytes of data where ${length} numbers of ${size} bytes are needed`);
    const view = new DataView(bytes.buffer);
    return Array.from({ length }, (_, i) =>
      kind === "counts" ? view.getUint16(2 * i, true) : view.getFloat32(4 * i, true),
    );
  }

  function quantile(values, share) {
    const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
    if (!sorted.length) return NaN;
    const place = share * (sorted.length - 1);
    const below = Math.floor(place);
    const above = Math.min(below + 1, sorted.length - 1);
    return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
  }

  /* --- controls; each gives its element and `value()` */

  let controls = 0;

  function select(label, options, changed, first) {
    const id = `explorer-control-${(controls += 1)}`;
    const input = html("select", { id, onchange: changed });
    options.forEach((option, i) => {
      const group = Array.isArray(option) ? option : [option, i];
      input.append(html("option", { value: group[1], text: group[0] }));
    });
    if (first !== undefined) input.value = String(first);
    return {
      element: html("div", { class: "explorer-control" }, html("label", { for: id, text: label }), input),
      value: () => Number(input.value),
      set: (value) => (input.value = String(value)),
    };
  }

  function slider(label, range, digits, changed) {
    const id = `explorer-control-${(controls += 1)}`;
    const output = html("output", { for: id });
    const input = html("input", { id, type: "range", ...range });
    const tell = () => {
      output.textContent = shown(Number(input.value), digits);
      input.setAttribute("aria-valuetext", output.textContent);
    };
    input.addEventListener("input", () => {
      tell();
      changed();
    });
    tell();
    const name = html("label", { for: id, text: label });
    return {
      element: html("div", { class: "explorer-control explorer-slider" }, name, output, input),
      value: () => Number(input.value),
      set: (value, changes) => {
        Object.entries(changes || {}).forEach(([key, bound]) => (input[key] = bound));
        input.value = String(value);
        tell();
      },
    };
  }

  function text(label, value, changed) {
    const id = `explorer-control-${(controls += 1)}`;
    const input = html("input", { id, type: "text", value, autocomplete: "off", oninput: changed });
    return {
      element: html("div", { class: "explorer-control" }, html("label", { for: id, text: label }), input),
      value: () => input.value,
      set: (value) => (input.value = String(value)),
    };
  }

  function choice(kind, legend, options, changed, first) {
    const name = `explorer-control-${(controls += 1)}`;
    const inputs = options.map((option, i) => {
      const input = html("input", { type: kind, name, id: `${name}-${i}`, onchange: changed });
      input.checked = kind === "checkbox" || i === (first || 0);
      return input;
    });
    const box = html("fieldset", { class: "explorer-control explorer-choice" });
    box.append(html("legend", { text: legend }));
    inputs.forEach((input, i) =>
      box.append(
        html("span", {}, input, html("label", { for: input.id, text: options[i] })),
      ),
    );
    return {
      element: box,
      value: () => inputs.findIndex((input) => input.checked),
      all: () => inputs.map((input) => input.checked),
      set: (values) => inputs.forEach((input, i) => (input.checked = values[i])),
    };
  }

  const radios = (...given) => choice("radio", ...given);
  const checks = (legend, options, changed) => choice("checkbox", legend, options, changed);

  function button(text, clicked) {
    return html("button", { type: "button", class: "explorer-button", text, onclick: clicked });
  }

  function panel(...parts) {
    return html("div", { class: "explorer-controls" }, ...parts.map((part) => part.element || part));
  }

  /* Where results are told in words: read out when they change, but not at every step of a slider. */
  function sentence() {
    const seen = html("p", { class: "explorer-said" });
    const heard = html("p", { class: "explorer-heard", role: "status", "aria-live": "polite" });
    let waiting;
    return {
      element: html("div", {}, seen, heard),
      tell: (parts) => {
        seen.replaceChildren(...parts);
        clearTimeout(waiting);
        waiting = setTimeout(() => (heard.textContent = seen.textContent), 600);
      },
    };
  }

  /* A number with its full precision beside what is shown. */
  function value(name, number, digits, sign) {
    return html("strong", { "data-name": name, "data-value": number, text: shown(number, digits, sign) });
  }

  function table(caption, heads, rows, options) {
    const body = html("table", { class: "explorer-table" });
    body.append(html("caption", {}, html("span", { text: caption })));
    body.append(
      html("thead", {}, html("tr", {}, ...heads.map((head) => html("th", { scope: "col", text: head })))),
    );
    body.append(
      html(
        "tbody",
        {},
        ...rows.map((row) =>
          html(
            "tr",
            {},
            html("th", { scope: "row", text: row.name }),
            ...row.values.map((number, i) => {
              const cell = html("td", { "data-value": number, text: shown(number, options.digits[i] ?? options.digits) });
              if (options.heat) {
                const share = Math.round(Math.min(1, Math.max(0, options.heat(number, i))) * 55);
                cell.style.setProperty("--heat", `${share}%`);
                cell.className = "explorer-heat";
              }
              return cell;
            }),
          ),
        ),
      ),
    );
    const region = html("div", { class: "explorer-scroll", "aria-label": caption }, body);
    window.followWide(region);
    return region;
  }

  /* --- plots: drawn anew at each width, so that letters keep their size */

  function ticks(low, high, wanted) {
    const rough = (high - low) / wanted;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
    const first = Math.ceil(low / step - 1e-9) * step;
    const found = [];
    for (let x = first; x <= high + step * 1e-9; x += step) found.push(Number((Math.round(x / step) * step).toPrecision(10)));
    return found;
  }

  function plot(height, draw) {
    const box = html("div", { class: "explorer-plot" });
    let width = 0;
    function again() {
      if (!width) return;
      const tall = typeof height === "function" ? height(width) : height;
      const root = svg("svg", { width, height: tall, viewBox: `0 0 ${width} ${tall}`, role: "img" });
      box.replaceChildren(root);
      draw(root, width, tall);
    }
    new ResizeObserver(() => {
      const found = Math.floor(box.clientWidth);
      if (found && found !== width) {
        width = found;
        attempt(box.closest("[data-explorer]"), again);
      }
    }).observe(box);
    return { element: box, draw: again };
  }

  /* Do a part of one box. If it fails, this box says so, and the page's other boxes go on. */
  function attempt(root, part) {
    try {
      part();
    } catch (error) {
      console.error(`explorer ${root.dataset.explorer}:`, error);
      root.querySelector(".explorer-body").replaceChildren(
        html("p", { class: "explorer-failure", role: "alert", text: FAILURE }),
        ...pictures(root),
      );
    }
  }

  /* The picture made by Python, which a page without scripts shows. */
  function pictures(root) {
    const without = root.querySelector("noscript");
    const parsed = new DOMParser().parseFromString(without ? without.textContent : "", "text/html");
    return parsed.querySelectorAll("img");
  }

  function label(root, alternative) {
    root.setAttribute("aria-label", alternative);
  }

  function frame(root, area, x, y, names, options) {
    const given = options || {};
    const X = (v) => area.left + ((v - x[0]) / (x[1] - x[0])) * (area.right - area.left);
    const Y = (v) => area.bottom - ((v - y[0]) / (y[1] - y[0])) * (area.bottom - area.top);
    const write = (at, text, more) =>
      root.append(svg("text", { x: at[0], y: at[1], class: "explorer-label", ...more, text }));
    const digits = (values) =>
      Math.max(0, ...values.map((v) => (String(v).split(".")[1] || "").length));
    if (given.xticks !== false) {
      const at = ticks(x[0], x[1], Math.max(2, Math.floor((area.right - area.left) / 70)));
      at.forEach((v) => {
        root.append(
          svg("line", { x1: X(v), x2: X(v), y1: area.top, y2: area.bottom, class: "explorer-grid" }),
        );
        write([X(v), area.bottom + 16], shown(v, digits(at)), { "text-anchor": "middle" });
      });
    }
    if (given.yticks !== false) {
      const at = ticks(y[0], y[1], Math.max(2, Math.floor((area.bottom - area.top) / 40)));
      at.forEach((v) => {
        root.append(
          svg("line", { x1: area.left, x2: area.right, y1: Y(v), y2: Y(v), class: "explorer-grid" }),
        );
        write([area.left - 6, Y(v) + 4], shown(v, digits(at)), { "text-anchor": "end" });
      });
    }
    root.append(
      svg("path", {
        d: `M${area.left} ${area.top}V${area.bottom}H${area.right}`,
        class: "explorer-axis",
      }),
    );
    if (names.x) {
      const middle = (area.left + area.right) / 2;
      write([middle, area.bottom + 34], names.x, { "text-anchor": "middle" });
    }
    if (names.y) write([2, area.top - 8], names.y, {});
    return { X, Y, write };
  }

  function line(points) {
    return points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(2)} ${y.toFixed(2)}`).join("");
  }

  const tools = {
    html, svg, shown, unpacked, quantile, select, slider, text, radios, checks, button, panel, sentence,
    value, table, plot, label, frame, line,
  };
  window.explorerScripts = window.explorerScripts || {};

  document.addEventListener("DOMContentLoaded", function () {
    document.querySelectorAll("[data-explorer]").forEach(function (root) {
      attempt(root, function () {
        const data = JSON.parse(root.querySelector("script.explorer-data").textContent);
        const body = root.querySelector(".explorer-body");
        window.explorerScripts[root.dataset.explorer](body, data, tools);
      });
    });
  });
})();
