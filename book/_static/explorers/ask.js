/* Ask a model: an item is typed, a worker reads its prompts, the score is made step by step. */
window.explorerScripts = window.explorerScripts || {};
window.explorerScripts.ask = function (body, data, tools) {
  "use strict";
  const { html, shown, value } = tools;
  const S = window.askScore;
  const NAMES = ["text", "premise", "hypothesis", "source", "inverse", "words", "seed"];
  const small = Boolean(data.small);
  let worker, ready, asked, state, row, pressed, left, asking = 0;

  /* --- what is typed; the link's part after # holds all of it */

  const given = new URLSearchParams(small ? "" : location.hash.slice(1));
  const field = Object.fromEntries(
    NAMES.map((name) => {
      const control = tools.text(data.labels[name], given.get(name) ?? data.first[name], changed);
      control.input = control.element.querySelector("input");
      control.element.classList.toggle("ask-wide", name !== "seed");
      control.element.hidden = small && !["source", "inverse", "words"].includes(name);
      return [name, control];
    }),
  );
  const options = [["An item of my own", -1], ...data.items.map((one, i) => [one.label, i])];
  const same = (one) => NAMES.every((name) => name === "seed" || one[name] === field[name].value());
  const sheet = [...document.querySelectorAll(small ? "none" : 'td a[href*="premise="]')].map((link) => ({
    link, cells: [...link.closest("tr").cells].slice(-2), ...Object.fromEntries(new URLSearchParams(link.hash.slice(1))),
  }));
  const chooser = tools.select("Start from an item of the book, or type your own", options, choose, data.items.findIndex(same));
  chooser.element.hidden = small;
  const start = tools.button(`Start the model (${Math.round(data.size / 1e6)} MB)`, begin);
  const ask = html("button", { class: "explorer-button", type: "submit", text: "Ask", disabled: "" });
  const stop = tools.button("Stop", halt);
  const copyLink = tools.button("Copy the link", () => copy(link(), "link"));
  const copyYaml = tools.button("Copy as YAML", () => copy(S.yaml(item()), "questionnaire", ` Save it as ${S.fileName(item())}.yaml.`));
  const progress = html("progress", { max: 1, value: 0, "aria-label": "Loaded", hidden: "" });
  const status = html("p", { role: "status", class: "ask-status", tabindex: "-1" });
  const findings = html("ul", { class: "ask-findings", "aria-live": "polite", "aria-label": "Notes on the wording" });
  const said = tools.sentence();
  const back = tools.button("Back to the sheet", () => row.link.focus());
  back.hidden = true;
  const results = html("div", { class: "ask-results" });
  const controls = tools.panel(chooser, ...NAMES.map((name) => field[name]));
  const starter = tools.panel(start);
  starter.hidden = !data.files.length;
  const buttons = tools.panel(ask, stop, ...(small ? [] : [copyLink, copyYaml]));
  const form = html("form", { novalidate: "" }, starter, progress, status, controls, findings, buttons);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!ask.disabled) put();
  });
  stop.disabled = true;
  body.append(form, said.element, back, results);
  if (small) {
    body.prepend(html("p", { class: "explorer-prompt", text: `\u201c${data.first.premise}\u201d Does it follow that \u201c${data.first.hypothesis}\u201d?` }));
    buttons.append(html("a", { class: "ask-more", text: "Ask an item of my own" }));
  }

  const typed = () => Object.fromEntries(NAMES.map((name) => [name, field[name].value()]));
  const item = () => S.read(typed());
  const link = () => new URL(`${data.page}#${new URLSearchParams(typed())}`, location.href).href;

  function choose() {
    const one = data.items[chooser.value()] || { ...data.first, text: "", premise: "", hypothesis: "", source: "", inverse: "" };
    for (const name of NAMES) if (one[name] !== undefined) field[name].input.value = one[name];
    changed();
  }

  function changed() {
    const now = item();
    const wrong = S.mistakes(now);
    if (!/^\s*\d+\s*$/.test(field.seed.value())) wrong.push("Give a whole number as the seed, such as 1.");
    const hints = data.rules && !wrong.length ? window.askRules(now, data.rules) : [];
    findings.replaceChildren(
      ...wrong.map((text) => html("li", { class: "ask-wrong", text })),
      ...hints.map(({ rule, text }) => html("li", { "data-rule": rule, text: `${rule[0].toUpperCase()}${rule.slice(1)}. ${text}` })),
    );
    chooser.element.querySelector("select").value = data.items.findIndex(same); // -1 is an item of my own
    row = sheet.find(same);
    back.hidden = !row;
    ask.disabled = !ready || wrong.length > 0;
    copyYaml.disabled = wrong.length > 0;
    if (!small) history.replaceState(null, "", link());
    const more = buttons.querySelector("a");
    if (more) more.href = link();
    if (asked && JSON.stringify(asked) !== JSON.stringify(typed()))
      tell("The fields have changed since this answer. Press Ask.");
  }

  /* a link of this page fills the fields; one that is pressed in the lab's sheet is asked, too */
  for (const { link } of sheet) link.addEventListener("click", () => (pressed = left = link));
  if (!small)
    window.addEventListener("hashchange", () => {
      const linked = new URLSearchParams(location.hash.slice(1));
      if (!linked.has("premise")) return;
      for (const name of NAMES) if (linked.has(name)) field[name].input.value = linked.get(name);
      changed();
      if (!pressed) return left && left.scrollIntoView({ block: "center" }); // by the browser's Back, to where the reader was
      pressed = null;
      if (!ask.disabled) put();
      else if (!ready && data.files.length) tell("The fields are filled. Press Start the model, and it answers.");
      (ready ? status : start).scrollIntoView();
    });

  function tell(text) {
    status.textContent = text;
  }

  async function copy(text, what, next = "") {
    try {
      await navigator.clipboard.writeText(text);
      tell(`The ${what} is copied.${next}`);
    } catch {
      results.prepend(html("textarea", { class: "ask-copied", rows: 8, "aria-label": `The ${what}, to copy by hand` }, text));
      tell(`Copy the ${what} from the field below.${next}`);
    }
  }

  /* --- the model */

  function begin() {
    if (location.protocol === "file:") return tell(data.serve);
    status.focus({ preventScroll: true }); // as the button goes away
    start.disabled = true;
    progress.hidden = false;
    tell("Loading the model. It is kept in this browser for the next visit.");
    const folder = new URL(data.folder, location.href).href;
    worker = new Worker(new URL(data.worker, location.href), { type: "module" });
    worker.onmessage = ({ data: message }) => heard[message.kind](message);
    worker.onerror = (event) => heard.failed({ text: event.message || "the worker did not start" });
    worker.postMessage({ kind: "start", files: data.files, folder, cacheName: data.cache });
  }

  const heard = {
    loading: ({ share }) => (progress.value = share),
    ready() {
      ready = true;
      progress.hidden = starter.hidden = true;
      const focused = document.activeElement === status;
      buttons.after(progress, status); // next to the button that is pressed from now on
      if (focused) status.focus({ preventScroll: true });
      tell("The model is loaded.");
      changed();
      if (!ask.disabled) put();
    },
    answers({ id, rows, values }) {
      if (id !== asking) return;
      rows.forEach((row, i) => (state.answers[row] = values[i][0]));
      progress.value = (state.read += rows.length) / state.prompts.length;
      if (state.read === state.prompts.length)
        tell(`Answered in ${shown((performance.now() - state.began) / 1000, 1)} s.`);
      draw();
    },
    vectors({ id, rows, values }) {
      if (id !== asking) return;
      rows.forEach((row, i) => (state.vectors[row] = values[i]));
    },
    done({ id, cut }) {
      if (id !== asking) return;
      state.heads = true;
      halt();
      if (cut) tell(`${status.textContent} ${cut} pairs were longer than the model can read, so their ends were cut off.`);
      draw();
    },
    failed({ text }) {
      halt();
      worker.terminate();
      starter.hidden = start.disabled = ready = false;
      starter.after(progress, status);
      progress.hidden = true;
      tell(`The model could not be loaded or run: ${text}. Press Start to try again.`);
      changed();
    },
  };

  function put() {
    asked = typed();
    const now = item();
    const prompts = S.prompts(now);
    state = { item: now, prompts, answers: [], vectors: [], read: 0, began: performance.now() };
    state.seed = Number(asked.seed);
    asking += 1;
    progress.hidden = stop.disabled = false;
    progress.value = 0;
    tell(`Asking ${prompts.length} pairs of sentences.`);
    const pairs = prompts.map(({ premise, hypothesis }) => [premise, hypothesis]);
    worker.postMessage({ kind: "ask", id: asking, pairs, longest: data.longest });
    draw();
  }

  function halt(event) {
    if (worker) worker.postMessage({ kind: "stop" });
    if (event) tell("Stopped.");
    asking += 1;
    progress.hidden = stop.disabled = true;
  }

  /* --- what is shown */

  function draw() {
    const { item: one, prompts, answers } = state;
    const terms = [...one.source.map((term) => `${term} (S+)`), ...one.inverse.map((term) => `${term} (S\u2212)`)];
    const heads = ["term", ...one.words.map(({ word }) => word)];
    const table = (caption, rows) => {
      const most = Math.max(...rows.flat().filter(Number.isFinite));
      const named = rows.map((values, i) => ({ name: terms[i], values }));
      const made = tools.table(caption, heads, named, { digits: 3, heat: (x) => (Number.isFinite(x) ? x / most : 0) });
      made.querySelectorAll("td[data-value=NaN]").forEach((cell) => (cell.textContent = "\u2026"));
      return made;
    };
    const raw = S.tabled(one, Array.from(prompts, (_, i) => answers[i] ?? NaN));
    const parts = [table("P(entailment): does the hypothesis follow from the premise?", raw)];
    if (answers.filter(Number.isFinite).length === prompts.length) {
      const own = S.score(one, raw, data.t);
      parts.push(table("Step one: each column divided by its sum.", own.shares));
      parts.push(table("Step two: each row divided by its sum. Only source terms (S+) enter the score.", own.pss));
      if (state.heads) parts.push(untrained(own, table));
      const spread = Number.isFinite(own.low)
        ? [", 95 % interval over the source terms ", value("low", own.low, 3, true), " to ", value("high", own.high, 3, true)]
        : [" (an interval needs two source terms)"];
      said.tell(["Score of the item: ", value("item", own.score, 3, true), ...spread, ". An even spread over the words gives ",
        shown(one.words.reduce((total, { weight }) => total + weight, 0) / one.words.length ** 2, 2, true), "."]);
      const listed = sheet.find((one) => NAMES.every((name) => name === "seed" || one[name] === asked[name]));
      const written = [shown(own.score, 3, true), `${shown(own.low, 3, true)} to ${shown(own.high, 3, true)}`];
      if (listed) listed.cells.forEach((cell, i) => (cell.textContent = written[i]));
    }
    const open = results.querySelector("details")?.open;
    const pairs = prompts.map((prompt, i) =>
      html("li", {}, `${prompt.premise} ${prompt.hypothesis} `, value("p", answers[i] ?? NaN, 3)),
    );
    const list = html("details", {}, html("summary", { text: `The ${pairs.length} pairs of sentences` }), html("ol", {}, ...pairs));
    list.open = Boolean(open);
    results.replaceChildren(...parts, list);
  }

  /* The same item answered by a head of random weights on the base before its training. */
  function untrained(own, table) {
    const { item: one, seed } = state;
    state.logits = state.logits || S.headLogits(state.vectors, seed);
    const factor = S.matching(one, state.logits, own.decided, data.t);
    const answers = [1, factor].map((times) => S.tabled(one, S.entailment(state.logits, times)));
    const scores = [own, ...answers.map((rows) => S.score(one, rows, data.t))];
    const names = ["trained model", "untrained head, at its start", "untrained head, as decisive as the model"];
    const shownOf = ["score", ...(one.source.length > 1 ? ["low", "high"] : []), "decided"];
    const rows = names.map((name, i) => ({ name, values: shownOf.map((key) => scores[i][key]) }));
    const caption = `The same item, answered by a head of random weights (seed ${seed}). Decisive: how far its answers are from an even spread, in per cent.`;
    return html("div", { class: "ask-null" },
      tools.table(caption, ["respondent", ...shownOf.map((key) => (key === "decided" ? "decisive" : key))], rows, { digits: [...shownOf.slice(1).map(() => 3), 0] }),
      table("P(entailment) of the untrained head, as decisive as the model.", answers[1]));
  }

  changed();
  if (!data.files.length) tell(data.missing);
};
