// The answer to a query: a ranked list, or bars.
import { byId, el, setText } from "./dom.js";
import { drawBars, drawRanked } from "./standing.js";
import { theme } from "./theme.js";
import { sayDuration, sayPlural } from "./words.js";

export class Answer {
  #box = byId("answer");

  /** @param {import("./cards.js").Cards} cards */
  constructor(cards, visit) {
    this.cards = cards;
    this.visit = visit;
  }

  show(query, answer) {
    const ago = `in the last ${sayDuration(query.last)}`;
    const list = el("ol", { class: query.kind === "trending" ? "bars" : "ranking", "aria-label": "Ranked answer" });
    const title = el("h3", { tabindex: "-1" });
    if (answer.terms) {
      drawBars(list, answer.terms);
      setText(title, answer.terms.length ? `Most frequent ${ago}` : `No terms ${ago}`);
      this.cards.showRanks([], "");
    } else {
      const places = answer.objects.map((place) => ({
        ...(answer.details && Object.hasOwn(answer.details, place.object) ? answer.details[place.object] : {}), ...place }));
      drawRanked(list, places, this.visit);
      const total = answer.total ?? places.length;
      setText(title, `${total ? sayPlural(total, "object") : "No objects"} ${ago}${total > 50 ? ", first 50:" : ""}`);
      this.cards.showRanks(places, theme.colour("accent"));
    }
    this.#box.replaceChildren(title, list);
    this.#box.hidden = false;
    title.focus({ preventScroll: true });
    this.#box.scrollIntoView({ block: "nearest" });
  }
}
