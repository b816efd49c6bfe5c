// The list of results, newest first.
import { byId, el, setText } from "./dom.js";
import { say } from "./notices.js";
import { centreOf, distance } from "./region.js";
import { sayCount, sayDistance, sayOrdinal, sayPlural, sayScore, sayTime, shorten } from "./words.js";

const MOST = 120;
const DRAW_MS = 350;

/** @typedef {{seq:number,id:string,lon?:number,lat?:number,text?:string}} Shown an object of a result */

const quote = (shown) => `“${shorten(shown.text ?? shown.id, 160)}”`;

function sayMatch(entry, shown) {
  const region = entry?.wish.region;
  if (!region || shown.lon === undefined) return `matched ${quote(shown)}`;
  return `matched ${quote(shown)}, ${sayDistance(distance(...centreOf(region), shown.lon, shown.lat))} from its centre`;
}

function sayPlace(entry, place, shown) {
  const rank = entry?.standing?.rankOf(place.object) ?? 0;
  const which = rank > 0 ? `${sayOrdinal(rank)} ` : "";
  return place.distance_m !== undefined
    ? `new ${which}nearest: ${quote(shown)}, ${sayDistance(place.distance_m)} away`
    : `new ${which}best: ${quote(shown)}, score ${sayScore(place.score)}`;
}

function sayTerms(terms) {
  const top = terms.slice(0, 4).map(([term, count]) => `${shorten(term, 24)} (${sayCount(count)})`);
  return top.length ? `trending: ${top.join(", ")}` : "no terms";
}

/**
 * A result as lines of the wire.
 * @returns {{words:string, shown:Shown|null}[]}
 */
export function linesOf(entry, result, details) {
  const shownOf = (id) => ({ id, seq: result.seq, ...(Object.hasOwn(details, id) ? details[id] : {}) });
  if (result.type === "match") {
    const shown = shownOf(result.object);
    return [{ words: sayMatch(entry, shown), shown }];
  }
  if (result.type === "report") return [{ words: sayTerms(result.terms), shown: null }];
  const added = result.add ?? [];
  if (!added.length) return [{ words: `dropped ${sayPlural(result.drop?.length ?? 0, "object")} that left the window`, shown: null }];
  return added.map((place) => {
    const shown = shownOf(place.object);
    return { words: sayPlace(entry, place, shown), shown };
  });
}

export class Wire {
  #list = byId("wire-list");
  #pending = [];
  #timer = null;
  #paused = false;
  #count = 0;
  #onlyMine = false;
  /** The row of each trending subscription's last report: the next one takes its place. @type {Map<string, HTMLElement>} */
  #reports = new Map();

  /** @param {(shown: Shown) => void} visit */
  constructor(visit) {
    this.visit = visit;
    byId("wire-mine").addEventListener("click", () => this.showOnlyMine(!this.#onlyMine));
    const button = byId("wire-pause");
    button.addEventListener("click", () => {
      this.#paused = !this.#paused;
      button.setAttribute("aria-pressed", String(this.#paused));
      setText(button, this.#paused ? "Resume" : "Pause");
      if (!this.#paused) this.#draw();
    });
  }

  /** Hide results of subscriptions created elsewhere. */
  showOnlyMine(only) {
    this.#onlyMine = only;
    this.#list.dataset.only = only ? "mine" : "all";
    byId("wire-mine").setAttribute("aria-pressed", String(only));
  }

  /** Offer the filter if there are subscriptions created here and elsewhere. */
  offerMine(offered) {
    byId("wire-mine").hidden = !offered;
    if (!offered) this.showOnlyMine(false);
  }

  /** @param {{id:string, colour:string, mine:boolean, report:boolean, words:string, shown:Shown|null}} line */
  add(line) {
    if (this.#onlyMine && !line.mine) return;
    this.#count += 1;
    this.#pending.push({ ...line, time: new Date() });
    if (this.#pending.length > MOST) this.#pending.splice(0, this.#pending.length - MOST);
    say(`${shorten(line.id, 60)} ${line.words}`);
    if (this.#timer === null) this.#timer = setTimeout(() => this.#draw(), DRAW_MS);
  }

  #draw() {
    this.#timer = null;
    setText(byId("wire-count"), `${sayPlural(this.#count, "result")}`);
    byId("wire-empty").hidden = this.#count > 0;
    byId("wire-head").hidden = this.#count === 0;
    if (this.#paused) return;
    const lines = this.#pending;
    this.#pending = [];
    for (const line of lines) this.#list.prepend(this.#row(line));
    while (this.#list.children.length > MOST) this.#list.lastElementChild?.remove();
    for (const [id, row] of this.#reports) if (!row.isConnected) this.#reports.delete(id);
  }

  #row({ id, colour, mine, report, words, shown, time }) {
    const said = [el("span", { class: "wire-name" }, shorten(id, 60)), " ", el("span", { class: "wire-words" }, words)];
    const clock = el("time", { datetime: time.toISOString() }, sayTime(time));
    const place = shown && shown.lon !== undefined;
    const body = place
      ? el("button", { type: "button", title: "Show on the map", on: { click: () => this.visit(shown) } }, ...said)
      : el("div", { class: "wire-body" }, ...said);
    const row = el("li", { class: "wire-row", vars: { hue: `var(--${colour})` }, data: { mine } }, body, clock);
    if (report) {
      this.#reports.get(id)?.remove();
      this.#reports.set(id, row);
    }
    return row;
  }
}
