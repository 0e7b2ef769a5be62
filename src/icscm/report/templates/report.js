// On paper what is folded is shown.
addEventListener("beforeprint", () => {
  document.querySelectorAll("details:not([open])").forEach((each) => {
    each.open = true;
    addEventListener("afterprint", () => { each.open = false; }, { once: true });
  });
});
