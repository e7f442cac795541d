/* Ask a whole questionnaire: it is pasted, a worker reads its prompts, scales and items get their scores. */
window.explorerScripts = window.explorerScripts || {};
window.explorerScripts.questionnaire = function (body, data, tools) {
  "use strict";
  const { html, svg, shown, value } = tools;
  const Q = window.askQuestionnaire;
  const SHOWN = 12; // notes on the wording
  const folder = () => new URL(data.folder, location.href).href;
  let whole, worker, ready, state, turn = 0, asking = 0;

  const chooser = tools.select("Start from an example, or paste your own", data.examples.map((one) => one.label), choose, 0);
  const text = html("textarea", { id: "questionnaire-text", rows: 12, spellcheck: "false", class: "ask-pasted", oninput: changed });
  const label = html("label", { for: text.id, text: "The questionnaire, as CSV or YAML" });
  const pasted = html("div", { class: "explorer-control ask-wide" }, label, text);
  const words = tools.text("Frequency words with their weights, for a CSV", data.words, changed);
  words.element.classList.add("ask-wide");
  const ask = html("button", { class: "explorer-button", type: "button", text: `Ask all items (loads ${Math.round(data.size / 1e6)} MB once)`, onclick: begin });
  const stop = tools.button("Stop", halt);
  const copyYaml = tools.button("Copy as YAML", copy);
  const progress = html("progress", { max: 1, value: 0, "aria-label": "Answered", hidden: "" });
  const status = html("p", { role: "status", class: "ask-status", tabindex: "-1" });
  const findings = html("ul", { class: "ask-findings", "aria-live": "polite", "aria-label": "Notes on the questionnaire" });
  const said = tools.sentence();
  const profile = tools.plot(() => 34 * (state ? state.scores.items.length : 0) + 60, drawProfile);
  const results = html("div", { class: "ask-results" });
  profile.element.hidden = true;
  stop.disabled = true;
  body.append(
    tools.panel(chooser, pasted, words), findings, tools.panel(ask, stop, copyYaml), progress, status,
    said.element, profile.element, results,
  );

  function choose() {
    text.value = data.examples[chooser.value()].text;
    changed();
  }

  const parser = () => import(new URL("js-yaml.mjs", folder()).href);

  async function changed() {
    const mine = (turn += 1);
    let found, wrong;
    try {
      found = await Q.read(text.value, words.value(), parser);
      wrong = Q.mistakes(found);
    } catch (error) {
      wrong = [location.protocol === "file:" ? data.serve : error.message];
    }
    if (mine !== turn) return; // more was typed meanwhile
    whole = wrong.length ? null : found;
    const notes = whole ? hints() : [];
    const more = notes.length > SHOWN ? [html("li", { text: `And ${notes.length - SHOWN} more notes; \u201cpsychometrics check\u201d lists all.` })] : [];
    findings.replaceChildren(
      ...wrong.slice(0, SHOWN).map((one) => html("li", { class: "ask-wrong", text: one })),
      ...notes.slice(0, SHOWN).map(([rule, one]) => html("li", { "data-rule": rule, text: one })), ...more,
    );
    ask.disabled = !whole || !data.files.length || !stop.disabled;
    copyYaml.disabled = !whole || !whole.table;
    words.element.hidden = Boolean(found && !found.table);
  }

  function hints() {
    const unasked = Q.unasked(whole).map((i) => i + 1);
    const notes = unasked.length
      ? [["prompts", `Items without prompts are not asked and not scored: ${unasked.join(", ")}. Give each source, inverse, premise and hypothesis.`]]
      : [];
    if (!/^en\b/i.test(whole.language))
      return [...notes, ["language", `The file says that its language is \u201c${whole.language}\u201d. The model was trained on English sentences, so its answers here say little.`]];
    const found = whole.items.flatMap((item, i) =>
      item.templates.flatMap((one) => window.askRules(one, data.rules).map(({ rule, text }) => [rule, `Item ${i + 1}, ${rule}. ${text}`])),
    );
    return [...notes, ...new Map(found.map((one) => [one[1], one])).values()];
  }

  function tell(sentence) {
    status.textContent = sentence;
  }

  async function copy() {
    const file = Q.yaml(whole);
    try {
      await navigator.clipboard.writeText(file.text);
      tell(`The questionnaire is copied. Save it as ${file.name}.`);
    } catch {
      results.prepend(html("textarea", { class: "ask-copied", rows: 8, "aria-label": "The questionnaire, to copy by hand" }, file.text));
      tell(`Copy the questionnaire from the field below, and save it as ${file.name}.`);
    }
  }

  /* --- the model */

  function begin() {
    if (location.protocol === "file:") return tell(data.serve);
    status.focus({ preventScroll: true }); // as the button goes away
    progress.hidden = stop.disabled = false;
    ask.disabled = true;
    progress.value = 0;
    if (ready) return put();
    tell("Loading the model. It is kept in this browser for the next visit.");
    worker = new Worker(new URL(data.worker, location.href), { type: "module" });
    worker.onmessage = ({ data: message }) => heard[message.kind](message);
    worker.onerror = (event) => heard.failed({ text: event.message || "the worker did not start" });
    worker.postMessage({ kind: "start", files: data.files, folder: folder(), cacheName: data.cache });
  }

  const heard = {
    loading: ({ share }) => (progress.value = share),
    ready() {
      ready = true;
      ask.textContent = "Ask all items";
      if (whole && !stop.disabled) put();
      else halt();
    },
    answers: (message) => received(message, (found) => found[0], "answers"),
    vectors: (message) => received(message, (found) => found, "vectors"),
    done({ id, cut }) {
      if (id !== asking) return;
      state.scores = Q.scores(state.whole, state.answers, data.t);
      state.alphas = Q.alphas(state.whole, state.vectors);
      const seconds = shown((performance.now() - state.began) / 1000, 0);
      halt();
      tell(`Answered in ${seconds} s.${cut ? ` ${cut} pairs were longer than the model can read, so their ends were cut off.` : ""}`);
      draw();
    },
    failed({ text: reason }) {
      halt();
      worker.terminate();
      ready = false;
      tell(`The model could not be loaded or run: ${reason}. Press Ask to try again.`);
    },
  };

  function received({ id, rows, values }, part, name) {
    if (id !== asking) return;
    rows.forEach((row, i) => (state[name][row] = part(values[i])));
    progress.value = (state.read += rows.length) / (2 * state.pairs);
  }

  function put() {
    const prompts = Q.prompts(whole);
    const pairs = prompts.map(({ premise, hypothesis }) => [premise, hypothesis]);
    state = { whole, pairs: pairs.length, answers: [], vectors: [], read: 0, began: performance.now(), scores: { items: [] } };
    asking += 1;
    profile.element.hidden = true;
    results.replaceChildren();
    said.tell([]);
    tell(`Asking ${pairs.length} pairs of sentences, twice: the model, and the network before its training.`);
    worker.postMessage({ kind: "ask", id: asking, pairs, longest: data.longest });
  }

  function halt(event) {
    if (worker) worker.postMessage({ kind: "stop" });
    if (event) tell("Stopped.");
    asking += 1;
    progress.hidden = stop.disabled = true;
    changed();
  }

  /* --- what is shown */

  function draw() {
    const { scores, alphas } = state;
    const [first] = scores.scales;
    const range = Number.isFinite(first.low)
      ? [`, 95 % interval over its ${first.items} items `, value("low", first.low, 3, true), " to ", value("high", first.high, 3, true)]
      : [" (an interval needs two items)"];
    const untrained = Number.isFinite(alphas[0])
      ? [" Untrained heads on the same network would have an alpha of ", value("alpha", alphas[0], 2),
         " on these items. No training gave it to them, so an alpha of that size says nothing about a model. ",
         "The model itself has no alpha here: alpha compares respondents, and this is one."]
      : [" Alpha needs two items with prompts."];
    said.tell([`Score of \u201c${first.title}\u201d: `, value("scale", first.score, 3, true), ...range, ".", ...untrained]);
    const scales = scores.scales.map((one, i) => ({ name: one.title, values: [one.score, one.low, one.high, one.items, alphas[i]] }));
    const rows = scores.items.map((one, i) => ({ name: named(i), values: [one.score, one.low, one.high, one.decided] }));
    const asked = rows.filter((row) => Number.isFinite(row.values[0]));
    results.replaceChildren(
      tools.table("Scales: each item's score by its key, averaged; alpha of untrained heads is computed, not simulated.",
        ["scale", "score", "low", "high", "items", "alpha, untrained"], scales, { digits: [3, 3, 3, 0, 2] }),
      tools.table("Items: score before its key, its 95 % interval over the source terms, and how decisive its answers are, in per cent.",
        ["item", "score", "low", "high", "decisive"], asked, { digits: [3, 3, 3, 0] }),
    );
    profile.element.hidden = false;
    profile.draw();
  }

  const named = (i) => `${i + 1}. ${state.whole.items[i].text}`;

  /* Each item as a dot with its interval, after its key: to the right is high on the scale. */
  function drawProfile(root, width, height) {
    const key = new Map(state.whole.scales.flatMap(({ places, keys }) => places.map((i, j) => [i, keys[j]])));
    const rows = state.scores.items.flatMap((one, i) => {
      const ends = [one.low, one.high].map((x) => x * (key.get(i) ?? 1)).sort((a, b) => a - b);
      return Number.isFinite(one.score) ? [{ i, score: one.score * (key.get(i) ?? 1), ends }] : [];
    });
    const reach = Math.max(0.05, ...rows.flatMap((one) => [one.score, ...one.ends]).filter(Number.isFinite).map(Math.abs));
    const area = { left: 8, right: width - 12, top: 8, bottom: height - 42 };
    const { X, write } = tools.frame(root, area, [-reach, reach], [0, 1], { x: "score by the item\u2019s key, 95 % interval" }, { yticks: false });
    root.append(svg("line", { x1: X(0), x2: X(0), y1: area.top, y2: area.bottom, class: "explorer-axis" }));
    rows.forEach(({ i, score, ends }, place) => {
      const y = area.top + 24 + 34 * place;
      const most = Math.floor((width - 40) / 7);
      write([area.left + 4, y - 8], named(i).length > most ? `${named(i).slice(0, most)}\u2026` : named(i), {});
      if (ends.every(Number.isFinite)) root.append(svg("line", { x1: X(ends[0]), x2: X(ends[1]), y1: y, y2: y, class: "explorer-mark" }));
      root.append(svg("circle", { cx: X(score), cy: y, r: 5, class: "explorer-dot" }));
    });
    tools.label(root, `Profile by item: ${rows.map(({ i, score }) => `${named(i)} ${shown(score, 2, true)}`).join("; ")}.`);
  }

  choose();
  if (!data.files.length) tell(data.missing);
};
