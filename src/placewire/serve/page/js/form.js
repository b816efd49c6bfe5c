// The form that creates a subscription or runs a query.
import { Answer } from "./answer.js";
import { service } from "./api.js";
import { byId, setText } from "./dom.js";
import { notify } from "./notices.js";
import { boxOf, circleOf, geometryOf, polygonOf, roundDegrees, wrapLon } from "./region.js";
import { nameFor, queryOf, regionOf, subscriptionOf, WrongField } from "./wish.js";

const KIND_HELP = {
  boolean: "Every object in a region that satisfies an expression.",
  nearest: "The k nearest objects to a point that have your keywords, from now on.",
  relevant: "The k best objects of a sliding window, by distance and words.",
  trending: "The k most frequent terms of a region, at a fixed interval.",
};
const WORDS = {
  boolean: ["Words", "coffee AND (free OR sale)", "AND, OR, NOT and parentheses. Words without an operator mean AND."],
  nearest: ["Keywords", "coffee tea", "One or more, separated by spaces."],
  relevant: ["Keywords", "coffee tea", "One or more, separated by spaces."],
};
const POINTED = new Set(["nearest", "relevant"]);

export class WishForm {
  #form = byId("wish");
  #answer;

  /**
   * @param {{subscriptions: import("./subscriptions.js").Subscriptions, view: import("./map.js").MapView,
   *   draw: import("./draw.js").Draw, cards: import("./cards.js").Cards, panel: import("./panel.js").Panel, visit: (shown:any) => void}} parts
   */
  constructor(parts) {
    this.parts = parts;
    this.#answer = new Answer(parts.cards, parts.visit);
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      void (event.submitter?.id === "ask" ? this.#ask() : this.#subscribe());
    });
    this.#form.addEventListener("input", () => this.#changed());
    byId("draw-start").addEventListener("click", () => void this.#draw());
    byId("draw-centre").addEventListener("click", () => this.#atCentre());
    this.#changed();
  }

  get fields() {
    const fields = Object.fromEntries(new FormData(this.#form));
    if (POINTED.has(String(fields.kind))) fields.shape = "point";
    return fields;
  }

  #field(name) {
    return this.#form.elements.namedItem(name);
  }

  /** Shows the fields of the kind and the shape, and the shape on the map. */
  #changed() {
    const { kind, shape } = this.fields;
    for (const part of this.#form.querySelectorAll("[data-kinds]")) part.hidden = !part.dataset.kinds.split(" ").includes(kind);
    for (const part of this.#form.querySelectorAll("[data-shapes]")) part.hidden = !part.dataset.shapes.split(" ").includes(shape);
    setText(byId("kind-help"), KIND_HELP[kind]);
    const [label, example, help] = WORDS[kind] ?? WORDS.boolean;
    setText(byId("words-label"), label);
    setText(byId("words-help"), help);
    this.#field("words").placeholder = example;
    this.#field("name").placeholder = nameFor(this.fields);
    setText(byId("draw-start"), { box: "Draw a box", circle: "Draw a circle", polygon: "Draw a polygon", point: "Pick on the map" }[shape] ?? "Draw");
    setText(byId("alpha-said"), `${Math.round(Number(this.fields.alpha) * 100)} % distance, ${Math.round(100 - Number(this.fields.alpha) * 100)} % words`);
    this.#complain(null);
    this.showDraft();
  }

  /** Show the region of the fields on the map, if they are complete and valid. */
  showDraft() {
    if (this.parts.draw.active) return;
    let geometry = null;
    try {
      const fields = this.fields;
      if (fields.shape === "point") {
        if (fields.lon !== "" && fields.lat !== "") geometry = { type: "Point", coordinates: [Number(fields.lon), Number(fields.lat)] };
      } else {
        const region = regionOf(fields);
        geometry = region ? geometryOf(region) : null;
      }
    } catch (error) {
      if (!(error instanceof WrongField)) throw error;
    }
    const open = this.parts.panel.current === "new";
    this.parts.view.show("draft", geometry && open ? [{ type: "Feature", properties: {}, geometry }] : []);
  }

  async #draw() {
    const { shape } = this.fields;
    this.parts.panel.makeRoom(true);
    const drawn = await this.parts.draw.start(shape);
    this.parts.panel.makeRoom(false);
    if (drawn) this.#fill(drawn);
    else this.showDraft();
    byId("draw-start").focus({ preventScroll: true });
  }

  #atCentre() {
    const { shape } = this.fields;
    const { view } = this.parts;
    const [a, b] = view.cornersAround(0.45);
    if (shape === "point") this.#fill(view.centre);
    else if (shape === "box") this.#fill(boxOf(a, b));
    else if (shape === "circle") this.#fill(circleOf(view.centre, [view.centre[0], Math.max(a[1], b[1])]));
    else this.#fill(polygonOf([a, [b[0], a[1]], b, [a[0], b[1]]]));
  }

  /** Writes a drawn region or point into the number fields. */
  #fill(drawn) {
    const write = (values) => {
      for (const [name, value] of Object.entries(values)) this.#field(name).value = String(value);
    };
    if (Array.isArray(drawn)) write({ lon: roundDegrees(wrapLon(drawn[0])), lat: roundDegrees(drawn[1]) });
    else if (drawn.box) write({ west: drawn.box[0], south: drawn.box[1], east: drawn.box[2], north: drawn.box[3] });
    else if (drawn.circle) write({ lon: drawn.circle.lon, lat: drawn.circle.lat, radius: drawn.circle.radius_m });
    else write({ polygon: drawn.polygon[0].slice(0, -1).map((corner) => corner.join(" ")).join("\n") });
    this.#changed();
  }

  async #subscribe() {
    const { subscriptions, cards, panel } = this.parts;
    await this.#sending("subscribe", async (fields) => {
      const typed = String(fields.name).trim();
      if (/^\.{1,2}$/.test(typed)) throw new WrongField("name", `id must not be “.” or “..”, got “${typed}”`); // no address can hold it
      const { entry, replaced } = await subscriptions.add(subscriptionOf(fields), typed || nameFor(fields), typed !== "");
      this.#field("name").value = "";
      this.#changed();
      cards.select(entry.id, false);
      const shown = entry.standing ? "subscriptions" : "wire";
      panel.show(shown, true);
      byId(`tab-${shown}`).focus({ preventScroll: true }); // the form is gone, and with it what had the focus
      notify(`${entry.id} ${replaced ? "replaced" : "created"}`, "Results appear as they arrive.");
    });
  }

  async #ask() {
    await this.#sending("ask", async (fields) => {
      const query = queryOf(fields);
      this.#answer.show(query, await service.query(query));
    });
  }

  async #sending(button, send) {
    const pressed = /** @type {HTMLButtonElement} */ (byId(button));
    this.#complain(null);
    pressed.setAttribute("aria-busy", "true");
    try {
      if (pressed.disabled) return;
      await send(this.fields);
    } catch (error) {
      this.#complain(error);
    } finally {
      pressed.removeAttribute("aria-busy");
    }
  }

  #complain(error) {
    for (const field of this.#form.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
    const line = byId("wish-error");
    line.hidden = error === null;
    if (error === null) return setText(line, "");
    setText(line, error.message.charAt(0).toUpperCase() + error.message.slice(1));
    const field = error instanceof WrongField ? this.#field(error.field) : null;
    if (field instanceof HTMLElement) {
      field.setAttribute("aria-invalid", "true");
      field.closest("details")?.setAttribute("open", "");
      field.focus();
    }
  }
}
