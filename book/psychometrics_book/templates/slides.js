const slides = [...document.querySelectorAll("main > section")];
const forward = ["ArrowRight", "ArrowDown", "PageDown", " "];
const back = ["ArrowLeft", "ArrowUp", "PageUp"];

addEventListener("keydown", (event) => {
  if (event.key === "s") document.body.classList.toggle("with-notes");
  const step = forward.includes(event.key) - back.includes(event.key);
  if (step === 0) return;

  event.preventDefault();
  const tops = slides.map((slide) => Math.abs(slide.getBoundingClientRect().top));
  const place = tops.indexOf(Math.min(...tops)) + step;
  slides[Math.max(0, Math.min(place, slides.length - 1))].scrollIntoView();
});
