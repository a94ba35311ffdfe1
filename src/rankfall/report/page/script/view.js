// ---- the view: what a reader has chosen stands in the address behind the place, as in #chart-residual?residual.training=init ----

const VIEW = { place: "", choices: new URLSearchParams() };
{
  const [place, choices] = location.hash.slice(1).split(/\?(.*)/s);
  VIEW.place = place;
  VIEW.choices = new URLSearchParams(choices || "");
}
VIEW.get = (name) => VIEW.choices.get(name);
VIEW.all = (name) => VIEW.choices.getAll(name);
// Without a value (null, an empty list or text) the choice is the usual one, and is not written.
VIEW.set = (name, values) => {
  VIEW.choices.delete(name);
  for (const value of [values].flat()) if (value !== null && value !== "") VIEW.choices.append(name, value);
  VIEW.write();
};
VIEW.write = () => {
  const choices = VIEW.choices.toString();
  if (VIEW.place || choices || location.hash) history.replaceState(null, "", `#${VIEW.place}${choices ? "?" + choices : ""}`);
};
VIEW.go = () => {
  const node = VIEW.place && byId(VIEW.place);
  if (!node) return;
  if (byId("more").contains(node)) unfold();
  node.scrollIntoView();
};
// Most of the page is folded: without height, but as wide as it will be, so that its charts are drawn. Printing leaves it out.
function unfold(open = true) {
  byId("more").classList.toggle("folded", !open);
  byId("unfold").setAttribute("aria-expanded", open);
}
byId("unfold").addEventListener("click", () => unfold(byId("more").classList.contains("folded")));
// A link within the page keeps what was chosen; an address with choices, put in by hand, is another view.
addEventListener("hashchange", () => {
  const hash = location.hash.slice(1);
  if (hash.includes("?")) return location.reload();
  VIEW.place = hash;
  VIEW.write();
  VIEW.go();
});
// A button that puts the address of the view, at this place, where it can be pasted.
function linkButton(place) {
  const says = make("span", { "aria-live": "polite" });
  const button = make("button", { type: "button", "data-link": place, onclick: () => {
    VIEW.place = place;
    VIEW.write();
    const done = (text) => { says.textContent = ` ${text}`; setTimeout(() => (says.textContent = ""), 4000); };
    const asked = navigator.clipboard ? navigator.clipboard.writeText(location.href) : Promise.reject();
    asked.then(() => done("copied"), () => done("it is in the address bar"));
  } }, "link to this view", says);
  return button;
}
