/* What untrained heads reach on each base and scale: a table with search, and a sentence to cite. */
window.explorerScripts = window.explorerScripts || {};
window.explorerScripts.impostors = function (body, data, tools) {
  "use strict";
  const { html, shown } = tools;
  const rows = data.rows.map((row) => ({ ...row, words: `${row.scale} ${row.base}`.toLowerCase() }));
  const search = tools.text("Search for a questionnaire or a base", "", update);
  const said = tools.sentence();
  const cited = html("div", { class: "impostor-cited", tabindex: -1, hidden: "" });
  const lines = html("tbody", {});
  const table = html(
    "table", { class: "explorer-table impostor-table" },
    html("caption", {}, html("span", { text: data.caption })),
    html("thead", {}, html("tr", {}, ...["scale, base", ...data.statistics].map((text) => html("th", { scope: "col", text })))),
    lines,
  );
  const region = html("div", { class: "explorer-scroll", "aria-label": data.caption }, table);
  body.append(tools.panel(search), said.element, cited, region);
  window.followWide(region);

  /* The value and the ends of its interval, or nothing where there is none. */
  function cell(values) {
    if (values[0] === null) return html("td", { text: "\u2013" });
    const [middle, low, high] = values.map((one) => shown(one, 2));
    return html(
      "td", { "data-value": values[0] }, middle, " ",
      html("small", { class: "impostor-interval", text: `${low}\u00a0to ${high}` }),
    );
  }

  function line(row) {
    const cite = html("button", {
      type: "button", class: "impostor-name", text: row.scale, onclick: () => show(row),
      "aria-label": `Cite ${row.scale} on ${row.base}`,
    });
    const name = html("th", { scope: "row" }, cite, html("small", { text: row.base }));
    return html("tr", {}, name, ...row.values.map(cell));
  }

  function update() {
    const words = search.value().toLowerCase().split(/\s+/).filter(Boolean);
    const found = rows.filter((row) => words.every((word) => row.words.includes(word)));
    lines.replaceChildren(...found.map(line));
    said.tell([found.length ? `${found.length} of ${rows.length} rows.` : "No row has all of these words."]);
  }

  /* --- the sentence, the file and the address of a row */

  function sentence(row) {
    const parts = row.values.flatMap((values, i) => {
      if (values[0] === null) return [];
      const [middle, low, high] = values.map((one) => shown(one, 2));
      return [data.phrases[i].replace("{value}", middle).replace("{interval}", `${low} to ${high}`)];
    });
    const all = parts.length > 1 ? `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}` : parts[0];
    return `On ${row.base}, heads with random weights, which have learnt nothing, give ${row.scale} ${all}. ${data.source}`;
  }

  function file(row) {
    const names = data.statistics.flatMap((name) => [name, `${name} low`, `${name} high`]);
    const values = row.values.flat().map((one) => (one === null ? "" : one));
    return `base,scale,${names.join(",")}\n"${row.base}","${row.scale}",${values.join(",")}\n`;
  }

  function show(row) {
    const address = `#${new URLSearchParams({ base: row.base, scale: row.scale })}`;
    const name = `impostors-${row.scale}-${row.base}`.toLowerCase().replace(/[^a-z0-9]+/g, "-");
    const text = sentence(row);
    const copy = tools.button("Copy the sentence", async () => {
      try {
        await navigator.clipboard.writeText(text);
        copy.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(cited.querySelector("q")); // to copy by hand
      }
    });
    cited.replaceChildren(
      html("p", {}, html("q", { text })),
      html("p", {},
        copy, " ",
        html("a", { href: `data:text/csv;charset=utf-8,${encodeURIComponent(file(row))}`, download: `${name}.csv`, text: "This row as CSV" }),
        " \u00b7 ", html("a", { href: address, text: "Link to this row" }),
      ),
    );
    cited.hidden = false;
    cited.focus();
  }

  function fromLink() {
    const linked = new URLSearchParams(location.hash.slice(1));
    const row = rows.find((one) => one.base === linked.get("base") && one.scale === linked.get("scale"));
    if (!row) return;
    search.set(`${row.scale} ${row.base}`);
    update();
    show(row);
  }

  window.addEventListener("hashchange", fromLink);
  update();
  fromLink();
};
