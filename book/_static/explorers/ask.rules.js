/* The rules for wording that need no model, as psychometrics.authoring.wording has them. */
window.askRules = function (item, lists) {
  "use strict";
  const [frequency, negations, common, sided, plain] = ["frequency", "negations", "common", "sided", "plain"].map(
    (name) => new Set(lists[name]),
  );
  const split = (text) => text.toLowerCase().match(/[a-z']+/g) || [];
  const within = (text, set) => [...new Set(split(text).filter((word) => set.has(word)))].sort();
  const named = (found) => found.map((word) => `\u201c${word}\u201d`).join(", ");

  function takesSide(word) {
    if (frequency.has(word) || common.has(word)) return false;
    for (let end = word.length; end > 4; end -= 1) {
      const begins = word.slice(0, end);
      if (sided.has(begins) || plain.has(begins)) return sided.has(begins);
    }
    return sided.has(word);
  }

  const says = (word) => split(item.text).some((own) => own.startsWith(word.slice(0, Math.max(4, word.length - 3))));
  const bare = (term) =>
    term.toLowerCase().split(/\s+/).filter((w) => !negations.has(w) && !["do", "does", "am"].includes(w)).join(" ");
  const rows = [];
  const find = (rule, finding, mend) => rows.push({ rule, text: `${finding}: ${mend}.` });

  /* The model reads English: a text with two more words of another language than of English is not. */
  const LANGUAGES = { de: "German", es: "Spanish", fr: "French" };
  const called = (name) => LANGUAGES[name] || `\u201c${name}\u201d`;
  const known = Object.entries(lists.languages).map(([name, one]) => [name, new Set([...one.words, ...one.degrees])]);
  const spoken = `${item.premise} ${item.hypothesis}`.replace(/{[^{}]*}/g, " ");
  for (const text of [item.text, [spoken, ...item.source, ...item.inverse].join(" ")]) {
    const said = new Set([...(text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) || []), text.toLowerCase()]);
    const hits = Object.fromEntries(known.map(([name, words]) => [name, [...said].filter((word) => words.has(word)).length]));
    const other = Object.keys(hits).reduce((a, b) => (hits[b] > hits[a] ? b : a));
    if (hits[other] >= hits.en + 2)
      find("language", `\u201c${text.split(/\s+/).join(" ").trim()}\u201d reads as ${called(other)}`, "translate it, as the model was trained on English sentences");
  }
  for (const { word } of item.words.filter((one) => !lists.languages.en.degrees.includes(one.word))) {
    const other = Object.keys(lists.languages).find((name) => lists.languages[name].degrees.includes(word));
    if (other) find("language", `\u201c${word}\u201d is a word of ${called(other)}`, "translate it");
  }

  const lower = item.text.toLowerCase();
  if (/\band\b.*\band\b|\band\/or\b/.test(lower))
    find("one question", "The item joins several things by \u201cand\u201d", "ask one thing");
  if (within(item.text, negations).length > 1)
    find("double negative", `The item denies twice (${named(within(item.text, negations))})`, "say it without one of them");
  const both = `${item.premise} ${item.hypothesis}`;
  const template = both.replace(/{[^{}]*}/g, " ");
  const terms = [...item.source, ...item.inverse];
  const side = [...new Set(split(template))].filter((word) => takesSide(word) && !says(word));
  if (side.length) find("neutral", `${named(side)} takes a side before a term is filled in`, "use a plain word, or let it be the term");
  const often = within(template, frequency).filter((word) => !split(item.text).includes(word));
  if (often.length) find("frequency", `${named(often)} says how often, beside the frequency word`, "take it out");
  const leading = lists.leading.filter((phrase) => new RegExp(`\\b${phrase}\\b`).test(template.toLowerCase()));
  if (leading.length) find("leading", `${named(leading)} leads`, "take it out");
  const denied = within(template, negations);
  if (denied.length) {
    for (const term of terms.filter((one) => within(one, negations).length))
      find("double negative", `\u201c${term}\u201d after ${named(denied)} denies twice`, "put the denial into the term alone");
    find("double negative", `${named(denied)} in the template denies twice with \u201cnever\u201d or \u201crarely\u201d`, "say it without");
  }
  const source = new Set(item.source.map(bare));
  for (const term of item.inverse.filter((one) => within(one, negations).length && source.has(bare(one))))
    find("opposites", `\u201c${term}\u201d is the source term denied, not its opposite`, "name what is there instead");
  const article = both.match(/\b(an?)\s+{term}/);
  for (const term of article ? terms : []) {
    const wanted = "aeiou".includes(term[0].toLowerCase()) ? "an" : "a";
    if (wanted !== article[1]) find("congruence", `\u201c${article[1]} ${term}\u201d`, `put the article into the term: \u201c${wanted} ${term}\u201d`);
  }
  return rows;
};
