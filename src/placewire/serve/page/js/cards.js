// The list of subscriptions: one card each, with its current results and a button that ends it.
import { byId, el, setText } from "./dom.js";
import { notify } from "./notices.js";
import { boundsOf, geometryOf } from "./region.js";
import { drawBars, drawRanked, sayStanding } from "./standing.js";
import { KIND_NAMES, sayWish } from "./wish.js";
import { sayPlural, shorten } from "./words.js";

const MOST_REGIONS = 80;
const MOST_OPEN = 24; // up to this many subscriptions all lists are open, above it only those created here

/** The geometry that a subscription has on the map, if any. */
function geometryFor(wish) {
  if (wish.region) return geometryOf(wish.region);
  if (wish.lon !== undefined) return { type: "Point", coordinates: [wish.lon, wish.lat] };
  return null;
}

export class Cards {
  #list = byId("cards");
  /** @type {Map<string, HTMLElement>} */
  #cards = new Map();
  #open = new Set();
  selected = null;

  /** @param {import("./subscriptions.js").Subscriptions} subscriptions @param {import("./map.js").MapView} view */
  constructor(subscriptions, view, visit) {
    this.subscriptions = subscriptions;
    this.view = view;
    this.visit = visit;
    subscriptions.addEventListener("list", () => this.#draw());
    subscriptions.addEventListener("standing", (event) => this.#drawStanding(event.detail));
    subscriptions.addEventListener("results", (event) => this.#drawCount(event.detail));
    byId("cards-more").addEventListener("click", () => void subscriptions.loadMore().catch((error) => notify("Cannot list more subscriptions", error.message)));
  }

  /** Selects one: its region stands out, its ranked objects get their numbers. */
  select(id, fit = true) {
    this.selected = this.selected === id && fit ? null : id;
    for (const [name, card] of this.#cards) card.dataset.selected = String(name === this.selected);
    this.drawRegions();
    this.#drawRanks();
    const entry = this.subscriptions.entries.get(this.selected);
    const geometry = entry && geometryFor(entry.wish);
    if (fit && geometry) {
      if (geometry.type === "Point") this.view.visit(...geometry.coordinates);
      else this.view.fit(boundsOf(geometry));
    }
  }

  open(id) {
    this.#open.add(id);
  }

  #draw() {
    const entries = this.subscriptions.sorted();
    const kept = new Map();
    for (const entry of entries) {
      const old = this.#cards.get(entry.id);
      if (entry.standing && !old && (entry.mine || entries.length <= MOST_OPEN)) this.#open.add(entry.id);
      const fresh = old && old.entry === entry ? old : this.#make(entry);
      kept.set(entry.id, fresh);
    }
    this.#cards = kept;
    this.#list.replaceChildren(...kept.values());
    for (const entry of entries) {
      this.#drawStanding(entry);
      this.#drawCount(entry);
    }
    byId("cards-empty").hidden = entries.length > 0;
    byId("cards-more").hidden = this.subscriptions.next === null;
    setText(byId("tab-subscriptions-count"), entries.length ? String(entries.length) + (this.subscriptions.next === null ? "" : "+") : "");
    if (this.selected !== null && !kept.has(this.selected)) this.selected = null;
    this.drawRegions();
    this.#drawRanks();
  }

  #make(entry) {
    const { id, kind, wish } = entry;
    const named = shorten(id, 60);
    const end = el("button", { type: "button", class: "quiet end", "aria-label": `End ${named}` }, "End");
    end.addEventListener("click", async () => {
      end.disabled = true;
      try {
        await this.subscriptions.end(id);
        notify(`${named} ended`);
        byId("tab-subscriptions").focus();
      } catch (error) {
        end.disabled = false;
        notify(`Cannot end ${named}`, error.message, undefined, "bad");
      }
    });
    const card = el("li", { class: "card", vars: { hue: `var(--${this.subscriptions.colourOf(id)})` }, data: { id, selected: String(id === this.selected) } },
      el("div", { class: "card-head" },
        el("button", { type: "button", class: "card-name", title: "Show on the map", on: { click: () => this.select(id) } }, named),
        el("span", { class: "card-kind" }, KIND_NAMES[kind] ?? kind), end),
      el("p", { class: "card-wish" }, shorten(sayWish(wish), 220)),
      el("p", { class: "card-count" }));
    if (entry.standing) card.append(this.#standing(entry));
    card.entry = entry;
    return card;
  }

  #standing(entry) {
    const details = el("details", { class: "standing", open: this.#open.has(entry.id) },
      el("summary", {}, entry.kind === "trending" ? "Current terms" : "Current results"),
      el("ol", { class: entry.kind === "trending" ? "bars" : "ranking", "aria-label": `${shorten(entry.id, 60)}: results in order` }),
      el("p", { class: "hint" }));
    details.addEventListener("toggle", () => {
      if (details.open === this.#open.has(entry.id)) return;
      if (details.open) {
        this.#open.add(entry.id);
        void this.subscriptions.reconcile(entry);
      } else this.#open.delete(entry.id);
    });
    return details;
  }

  #drawStanding(entry) {
    const card = this.#cards.get(entry.id);
    if (!card || !entry.standing) return;
    const list = card.querySelector("ol");
    if (entry.kind === "trending") drawBars(list, entry.standing.terms);
    else drawRanked(list, entry.standing.places, this.visit);
    setText(card.querySelector(".hint"), sayStanding(entry.standing));
    if (entry.id === this.selected) this.#drawRanks();
  }

  #drawCount(entry) {
    const card = this.#cards.get(entry.id);
    if (card) setText(card.querySelector(".card-count"), entry.results ? sayPlural(entry.results, "result") : "No results yet");
  }

  drawRegions() {
    const features = [];
    for (const { id, wish } of this.subscriptions.sorted().slice(0, MOST_REGIONS).reverse()) {
      const colour = this.subscriptions.rgbOf(id);
      const properties = { id, colour, selected: id === this.selected };
      const geometry = geometryFor(wish);
      if (geometry) features.push({ type: "Feature", properties, geometry });
      if (wish.within_m) features.push({ type: "Feature", properties, geometry: geometryOf({ circle: { lon: wish.lon, lat: wish.lat, radius_m: wish.within_m } }) });
    }
    this.view.show("regions", features);
  }

  #drawRanks() {
    const entry = this.subscriptions.entries.get(this.selected);
    this.showRanks(entry?.standing?.places ?? [], entry ? this.subscriptions.rgbOf(entry.id) : "");
  }

  /** Numbers on the map for the places of a ranked list. */
  showRanks(places, colour) {
    this.view.show("standing", places.slice(0, 50).flatMap((place, index) => (place.lon === undefined ? [] : [{
      type: "Feature", properties: { rank: String(index + 1), colour }, geometry: { type: "Point", coordinates: [place.lon, place.lat] } }])));
  }
}
