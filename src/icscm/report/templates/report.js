// On paper what is folded is shown.
addEventListener("beforeprint", () => {
  document.querySelectorAll("details:not([open])").forEach((each) => {
    each.open = true;
    addEventListener("afterprint", () => { each.open = false; }, { once: true });
  });
});
// Shows one of the models along alpha at a time; without this script all of them are shown.
(() => {
  "use strict";
  const slider = document.getElementById("alpha");
  if (!slider) return;
  const places = JSON.parse(document.getElementById("alpha-places").textContent);
  const output = document.getElementById("alpha-output");
  const views = document.querySelectorAll("#views > .view");
  const show = () => {
    const place = places[Number(slider.value)];
    views.forEach((view, number) => { view.hidden = number !== place.model; });
    slider.setAttribute("aria-valuetext", "alpha " + place.alpha);
    output.textContent = place.text;
  };
  slider.addEventListener("input", show);
  slider.closest(".slider").hidden = false;
  show();
})();
