// Current results: the k nearest, the k most relevant, the most frequent terms.
import { el, setText } from "./dom.js";
import { sayCount, sayDistance, sayPlural, sayScore, sayTime, shorten } from "./words.js";

const SHOWN = 50;

/** @typedef {{object:string,seq?:number,distance_m?:number,score?:number,text?:string,lon?:number,lat?:number}} Place one place of a ranked list */

function before(one, other) {
  if (one.distance_m !== undefined) return one.distance_m - other.distance_m || (one.seq ?? 0) - (other.seq ?? 0);
  return other.score - one.score || (other.seq ?? 0) - (one.seq ?? 0);
}

/** The result of one ranked or trending subscription as it stands. */
export class Standing {
  /** @type {Place[]} */
  places = [];
  /** @type {[string, number][]} */
  terms = [];
  at = "";
  /** Objects whose texts were asked for: those that are not kept any more are not asked for again. */
  #asked = new Set();

  constructor(kind, k) {
    this.kind = kind;
    this.k = k;
  }

  /** Applies an update or a report. @param {Record<string, any>} result @param {Record<string, any>} details */
  apply(result, details) {
    if (result.type === "report") {
      this.terms = result.terms;
      this.at = result.at;
      return;
    }
    for (const { object } of result.drop ?? []) {
      const row = this.places.findLastIndex((place) => place.object === object);
      if (row >= 0) this.places.splice(row, 1);
    }
    for (const place of result.add ?? []) {
      const known = Object.hasOwn(details, place.object) ? details[place.object] : {};
      this.places.push({ seq: result.seq, ...known, ...place });
    }
    this.places.sort(before);
    this.places.length = Math.min(this.places.length, this.k);
  }

  /** Takes the list as the service has it, with the texts that are known here. */
  replace(reply) {
    if (reply.terms) {
      this.terms = reply.terms;
      this.at = reply.at ?? "";
      return;
    }
    const details = reply.details ?? {};
    const known = new Map(this.places.map((place) => [place.object, place]));
    this.places = (reply.objects ?? []).map((place) => {
      const here = known.get(place.object);
      const told = here?.text === undefined && Object.hasOwn(details, place.object) ? details[place.object] : {};
      return { ...here, ...told, ...place };
    });
  }

  /** Whether places that are shown came before this page was opened, and their texts are not known. */
  asksForTexts() {
    const unknown = this.places.slice(0, SHOWN).filter(({ object, text }) => text === undefined && !this.#asked.has(object));
    for (const { object } of unknown) this.#asked.add(object);
    return unknown.length > 0;
  }

  rankOf(object) {
    return this.places.findIndex((place) => place.object === object) + 1;
  }
}

function keepRows(list, count, make) {
  while (list.children.length > count) list.lastElementChild?.remove();
  while (list.children.length < count) list.append(make());
}

function rankedRow(visit) {
  const row = el("li", { class: "ranked" });
  const button = el("button", { type: "button", on: { click: () => visit(Number(row.dataset.row)) } },
    el("span", { class: "ranked-text" }), el("span", { class: "ranked-value" }));
  row.append(el("span", { class: "rank", "aria-hidden": "true" }), button);
  return row;
}

/** Draws places into an `ol`, row by row in place, so that focus stays where it is. */
export function drawRanked(list, places, visit) {
  const shown = places.slice(0, SHOWN);
  keepRows(list, shown.length, () => rankedRow((row) => visit(list.places[row])));
  list.places = shown;
  shown.forEach((place, index) => {
    const row = list.children[index];
    row.dataset.row = String(index);
    setText(row.querySelector(".rank"), String(index + 1));
    setText(row.querySelector(".ranked-text"), shorten(place.text ?? place.object, 140));
    setText(row.querySelector(".ranked-value"), place.distance_m !== undefined ? sayDistance(place.distance_m)
      : place.score !== undefined ? sayScore(place.score) : "");
    row.querySelector("button").disabled = place.lon === undefined;
    row.querySelector("button").title = place.text === undefined ? "" : place.object.slice(0, 80);
  });
}

function barRow() {
  return el("li", { class: "bar" }, el("span", { class: "bar-term" }), el("span", { class: "bar-count" }),
    el("span", { class: "bar-track", "aria-hidden": "true" }, el("span", { class: "bar-fill" })));
}

/** Draws terms and counts as bars into an `ol`. */
export function drawBars(list, terms) {
  const shown = terms.slice(0, SHOWN);
  const most = Math.max(1, ...shown.map(([, count]) => count));
  keepRows(list, shown.length, barRow);
  shown.forEach(([term, count], index) => {
    const row = list.children[index];
    setText(row.querySelector(".bar-term"), shorten(term, 40));
    setText(row.querySelector(".bar-count"), sayCount(count));
    row.querySelector(".bar-fill").style.setProperty("--share", String(count / most));
  });
}

/** The line under a standing: what it is, or why it is empty. */
export function sayStanding(standing) {
  if (standing.kind === "trending") {
    return standing.at ? `Updated ${sayTime(new Date(standing.at))}` : "Waiting for the first report.";
  }
  const n = standing.places.length;
  if (n === 0) return "No matching objects yet.";
  return n < standing.k ? `${sayPlural(n, "object")} of ${standing.k} so far` : "";
}
