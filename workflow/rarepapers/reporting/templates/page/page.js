"use strict";
// Filter of claims by text. The style sheet filters by verdict, paper and kind.
const claims = document.querySelector(".claims");
if (claims) {
  const text = claims.querySelector("[type=search]");
  const shown = claims.querySelector("output");
  const rows = [...claims.querySelectorAll(".claim")];
  const words = rows.map((row) => row.textContent.toLowerCase());
  // Whether no filter hides a row or a part around it. Rows in closed details count.
  const passes = (part) => part === claims || (getComputedStyle(part).display !== "none" && passes(part.parentElement));
  const filter = () => {
    const wanted = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    rows.forEach((row, k) => { row.hidden = !wanted.every((word) => words[k].includes(word)); });
    const seen = rows.filter(passes).length;
    shown.textContent = `${seen} of ${rows.length} claims`;
  };
  claims.addEventListener("input", filter);
  text.closest(".filter").hidden = false;
  filter();
}
// A link into the page opens what its place is folded in.
function unfold() {
  const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let part = place; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
  if (place) place.scrollIntoView();
}
addEventListener("hashchange", unfold);
if (location.hash) unfold();
