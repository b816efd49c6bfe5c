// The panel: its tabs, and on a phone the sheet that it becomes.
import { byId } from "./dom.js";

const TABS = ["wire", "subscriptions", "new", "system"];
const HEIGHTS = ["low", "half", "full"];
const DRAG_PX = 40;

export const narrow = matchMedia("(max-width: 760px)");

export class Panel extends EventTarget {
  current = "wire";
  #panel = byId("panel");
  #before = "half";

  constructor() {
    super();
    for (const name of TABS) byId(`tab-${name}`).addEventListener("click", () => this.show(name, true));
    byId("tabs").addEventListener("keydown", (event) => this.#arrow(event));
    for (const button of document.querySelectorAll("[data-open-tab]")) {
      button.addEventListener("click", () => {
        this.show(button.dataset.openTab, true);
        byId(`view-${button.dataset.openTab}`).querySelector("input, button, [tabindex]")?.focus();
      });
    }
    this.#handle(byId("handle"));
    this.height = "half";
    this.#placePlots();
    narrow.addEventListener("change", () => {
      this.#placePlots();
      this.#resized();
    });
    new ResizeObserver(() => this.#resized()).observe(this.#panel);
  }

  /** Shows a tab; a low sheet comes up for it when a person asked. */
  show(name, asked = false) {
    this.current = name;
    for (const other of TABS) {
      const tab = byId(`tab-${other}`);
      tab.setAttribute("aria-selected", String(other === name));
      tab.tabIndex = other === name ? 0 : -1;
      byId(`view-${other}`).hidden = other !== name;
    }
    byId("views").scrollTop = 0;
    if (asked && this.height === "low") this.height = "half";
    this.dispatchEvent(new Event("show"));
  }

  get height() {
    return this.#panel.dataset.height ?? "half";
  }

  set height(height) {
    this.#panel.dataset.height = height;
    byId("handle").setAttribute("aria-expanded", String(height !== "low"));
    this.#resized();
  }

  /** While somebody draws, a sheet gets out of the way. */
  makeRoom(away) {
    if (!narrow.matches) return;
    if (away) {
      this.#before = this.height;
      this.height = "low";
    } else this.height = this.#before;
  }

  /** What the panel covers of the map. */
  get covered() {
    const none = { top: 0, left: 0, bottom: 0, right: 0 };
    if (!narrow.matches) return { ...none, left: this.#panel.offsetWidth + 12 };
    const share = { low: 0, half: 0.5, full: 0.5 }[this.height];
    return { ...none, bottom: Math.max(120, innerHeight * share) };
  }

  #resized() {
    this.dispatchEvent(new Event("resize"));
  }

  #placePlots() {
    const home = narrow.matches ? byId("plots-in-system") : byId("plots-on-map");
    if (byId("plots").parentElement !== home) home.append(byId("plots"));
  }

  #arrow(event) {
    const at = TABS.indexOf(this.current);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: TABS.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.show(TABS[(to + TABS.length) % TABS.length], true);
    byId(`tab-${this.current}`).focus();
  }

  /** The sheet's handle: a press goes one height on, a drag goes where it is drawn to. */
  #handle(handle) {
    let from = null;
    let dragged = false;
    handle.addEventListener("pointerdown", (event) => {
      from = event.clientY;
      dragged = false;
      handle.setPointerCapture(event.pointerId);
    });
    handle.addEventListener("pointerup", (event) => {
      if (from === null) return;
      const moved = from - event.clientY;
      from = null;
      if (Math.abs(moved) < DRAG_PX) return;
      dragged = true;
      const to = HEIGHTS.indexOf(this.height) + Math.sign(moved) * (Math.abs(moved) > innerHeight * 0.45 ? 2 : 1);
      this.height = HEIGHTS[Math.min(2, Math.max(0, to))];
    });
    handle.addEventListener("click", () => {
      if (dragged) return;
      this.height = { low: "half", half: "full", full: "low" }[this.height];
    });
  }
}
