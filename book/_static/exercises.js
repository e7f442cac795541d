/* Compares a typed answer with that of the exercise, by the rules of psychometrics_book.exercises. */
(function () {
  "use strict";

  function readings(said) {
    let text = said.replace(/\s/g, "").replace(/\u2212/g, "-");
    const share = text.endsWith("%");
    if (share) text = text.slice(0, -1);
    const spellings = [text.replace(/,/g, ".")];
    if (/^[+-]?\d{1,3}(,\d{3})+(\.\d*)?$/.test(text)) spellings.push(text.replace(/,/g, ""));
    const numbers = spellings
      .filter((spelling) => /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(spelling))
      .map(Number);
    const parts = text.match(/^([+-]?\d+)\/(\d*[1-9]\d*)$/);
    if (parts) numbers.push(parts[1] / parts[2]);
    return share ? numbers.concat(numbers.map((number) => number / 100)) : numbers;
  }

  function letters(text) {
    return text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
  }

  /* "right", "not yet", or what kind of answer is wanted. */
  function judge(said, answer, tolerance) {
    if (tolerance === undefined) {
      if (!letters(said)) return "Type a word first.";
      return answer.split("|").some((one) => letters(one) === letters(said)) ? "right" : "not yet";
    }
    const found = readings(said);
    if (!found.length) return "The answer is a number, such as 0.42.";
    const wanted = Number(answer);
    const slack = Number(tolerance) + 1e-9 * Math.max(1, Math.abs(wanted));
    return found.some((number) => Math.abs(number - wanted) <= slack) ? "right" : "not yet";
  }

  /* What to look at in a wrong number, if the exercise knows the mistake. */
  function hint(said, hints) {
    for (const [number, sentence] of Object.entries(hints)) {
      if (readings(said).some((one) => Math.abs(one - number) <= Math.abs(number) / 100)) return sentence;
    }
    return "Look at it once more, and try again.";
  }

  function arm(form) {
    const input = form.querySelector("input");
    const output = form.querySelector("output");
    form.hidden = false;
    form.nextElementSibling.classList.add("check-answer-scripted");
    form.addEventListener("submit", function (event) {
      event.preventDefault();
      const verdict = judge(input.value, form.dataset.answer, form.dataset.tolerance);
      output.className = verdict === "right" ? "check-right" : "check-wrong";
      output.textContent =
        verdict === "right"
          ? "\u2713 Right."
          : verdict === "not yet"
            ? `Not yet. ${hint(input.value, JSON.parse(form.dataset.hints || "{}"))}`
            : verdict;
    });
    input.addEventListener("input", function () {
      output.textContent = "";
    });
  }

  document.addEventListener("DOMContentLoaded", function () {
    document.querySelectorAll("form.check-answer").forEach(arm);
  });
})();
