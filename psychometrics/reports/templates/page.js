const said = document.querySelector(".said");
for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const field = document.createElement("textarea");
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
    } catch {
      // an older browser, or one that gives a file no clipboard
      field.value = button.dataset.copy;
      document.body.append(field);
      field.select();
      document.execCommand("copy");
      field.remove();
      button.focus();
    }
    said.textContent = "Copied.";
    setTimeout(() => { said.textContent = ""; }, 2000);
  });
}
