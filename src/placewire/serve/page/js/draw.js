// Draw a region or a point on the map with a pointer, or with keys that move the map under a crosshair.
import { byId, el, setText } from "./dom.js";
import { boxOf, circleOf, geometryOf, polygonOf } from "./region.js";

const HELP = {
  box: "Drag from corner to corner.",
  circle: "Drag outwards from the centre.",
  polygon: "Click each corner. Double-click the last one.",
  point: "Click the point.",
};
const KEYS = "Keyboard: arrow keys move the map under the crosshair, Enter sets a point, Backspace removes it, Escape cancels.";
const STEP_PX = 40;
const FINE_PX = 6;
const CLOSE_PX = 9;
const REST_MS = 350;

/** @typedef {"box"|"circle"|"polygon"|"point"} Tool */

export class Draw {
  /** @type {Tool|null} */
  #tool = null;
  #anchors = [];
  #pen = null;
  #dragging = null;
  #done = null;
  #cancelled = null;
  #resting = 0;
  #cross = el("div", { class: "cross", "aria-hidden": "true", hidden: true });

  /** @param {import("./map.js").MapView} view */
  constructor(view) {
    this.view = view;
    this.bar = byId("draw-bar");
    view.container.append(this.#cross);
    byId("draw-cancel").addEventListener("click", () => this.cancel());
    byId("draw-finish").addEventListener("click", () => this.#finishPolygon());
    byId("draw-undo").addEventListener("click", () => this.#undo());
    const surface = view.map?.getCanvasContainer();
    surface?.addEventListener("pointerdown", (event) => this.#down(event));
    surface?.addEventListener("pointermove", (event) => this.#move(event));
    surface?.addEventListener("pointerup", (event) => this.#up(event));
    surface?.addEventListener("pointercancel", () => this.cancel());
    view.container.addEventListener("keydown", (event) => this.#key(event), { capture: true });
    this.bar.addEventListener("keydown", (event) => { if (event.key === "Escape") this.cancel(); });
    view.map?.on("move", () => { if (this.#tool && !this.#cross.hidden) this.#penAtCentre(); });
  }

  get active() {
    return this.#tool !== null;
  }

  /** Begins; resolves with a region (or [lon, lat] of a point), or null when it was given up. @param {Tool} tool */
  start(tool) {
    this.cancel();
    const { map, container } = this.view;
    if (!map) return Promise.resolve(null);
    clearTimeout(this.#resting);
    this.#tool = tool;
    this.#anchors = [];
    this.#pen = null;
    container.dataset.drawing = tool;
    map.dragPan.disable();
    map.boxZoom.disable();
    map.doubleClickZoom.disable();
    setText(byId("draw-help"), HELP[tool]);
    setText(byId("draw-keys"), KEYS);
    this.bar.hidden = false;
    this.#buttons();
    map.getCanvas().focus();
    this.#preview();
    return new Promise((resolve) => {
      this.#done = resolve;
      this.#cancelled = () => resolve(null);
    });
  }

  cancel() {
    if (!this.#tool) return;
    const cancelled = this.#cancelled;
    this.#leave();
    cancelled?.();
  }

  #leave() {
    const { map, container } = this.view;
    this.#tool = null;
    this.#dragging = null;
    this.#cross.hidden = true;
    this.bar.hidden = true;
    map.dragPan.enable();
    map.boxZoom.enable();
    // The click or double click that ended the drawing is still on its way to the map.
    this.#resting = setTimeout(() => {
      delete container.dataset.drawing;
      map.doubleClickZoom.enable();
    }, REST_MS);
    this.view.show("draft", []);
  }

  #finish(result) {
    const done = this.#done;
    this.#leave();
    done?.(result);
  }

  #at(event) {
    const box = this.view.map.getCanvas().getBoundingClientRect();
    return this.view.map.unproject([event.clientX - box.left, event.clientY - box.top]).toArray();
  }

  #down(event) {
    if (!this.#tool || event.button !== 0 || !event.isPrimary) return;
    this.#cross.hidden = true;
    const point = this.#at(event);
    this.#dragging = { x: event.clientX, y: event.clientY };
    if (this.#tool === "box" || this.#tool === "circle") {
      event.target.setPointerCapture?.(event.pointerId);
      if (!this.#anchors.length) this.#anchors = [point];
      this.#pen = point;
    }
    this.#preview();
  }

  #move(event) {
    if (!this.#tool || !event.isPrimary || !this.#cross.hidden) return;
    if (this.#anchors.length) {
      this.#pen = this.#at(event);
      this.#preview();
    }
  }

  #up(event) {
    if (!this.#tool || !this.#dragging || !event.isPrimary) return;
    const moved = Math.hypot(event.clientX - this.#dragging.x, event.clientY - this.#dragging.y);
    const point = this.#at(event);
    this.#dragging = null;
    if (this.#tool === "point") this.#finish(point);
    else if (this.#tool === "polygon") this.#corner(point, event);
    else if (moved > 4 || this.#isFar(event)) this.#second(point);
  }

  /** Two clicks do as well as a drag. */
  #isFar(event) {
    const anchor = this.view.map.project(this.#anchors[0]);
    const box = this.view.map.getCanvas().getBoundingClientRect();
    return Math.hypot(event.clientX - box.left - anchor.x, event.clientY - box.top - anchor.y) > 4;
  }

  #corner(point, event) {
    const box = this.view.map.getCanvas().getBoundingClientRect();
    const near = (corner) => {
      const at = this.view.map.project(corner);
      return Math.hypot(event.clientX - box.left - at.x, event.clientY - box.top - at.y) < CLOSE_PX;
    };
    const count = this.#anchors.length;
    if (count >= 3 && (near(this.#anchors[0]) || near(this.#anchors[count - 1]))) return this.#finishPolygon();
    if (count && near(this.#anchors[count - 1])) return;
    this.#add(point);
  }

  #add(point) {
    this.#anchors.push(point);
    this.#pen = point;
    this.#buttons();
    this.#preview();
  }

  #second(point) {
    this.#finish(this.#tool === "box" ? boxOf(this.#anchors[0], point) : circleOf(this.#anchors[0], point));
  }

  #finishPolygon() {
    if (this.#tool === "polygon" && this.#anchors.length >= 3) this.#finish(polygonOf(this.#anchors));
  }

  #undo() {
    this.#anchors.pop();
    this.#buttons();
    this.#preview();
  }

  #buttons() {
    const polygon = this.#tool === "polygon";
    byId("draw-finish").hidden = !polygon;
    byId("draw-undo").hidden = !polygon;
    byId("draw-finish").disabled = this.#anchors.length < 3;
    byId("draw-undo").disabled = !this.#anchors.length;
  }

  #key(event) {
    if (!this.#tool || event.target !== this.view.map.getCanvas()) return;
    const step = event.shiftKey ? FINE_PX : STEP_PX;
    const pans = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] };
    if (pans[event.key]) {
      this.view.map.panBy(pans[event.key], { duration: 0 });
      this.#penAtCentre();
    } else if (event.key === "Enter" || event.key === " ") this.#set();
    else if (event.key === "Backspace") this.#undo();
    else if (event.key === "Escape") this.cancel();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #penAtCentre() {
    const at = this.view.map.project(this.view.centre);
    this.#cross.hidden = false;
    this.#cross.style.setProperty("--x", `${at.x}px`);
    this.#cross.style.setProperty("--y", `${at.y}px`);
    this.#pen = this.view.centre;
    this.#preview();
  }

  /** Enter: what a click does, where the cross is. */
  #set() {
    this.#penAtCentre();
    const point = this.view.centre;
    if (this.#tool === "point") return this.#finish(point);
    const last = this.#anchors.at(-1);
    if (last && last[0] === point[0] && last[1] === point[1]) return this.#finishPolygon();
    if (this.#tool === "polygon") this.#add(point);
    else if (this.#anchors.length) this.#second(point);
    else this.#add(point);
    setText(byId("draw-keys"), this.#tool === "polygon" ? `${this.#anchors.length} corners. Press Enter twice on the last corner to finish.` : "First point set. Move to the second and press Enter.");
  }

  #preview() {
    if (!this.#tool) return;
    const features = this.#anchors.map((point) => ({ type: "Feature", properties: {}, geometry: { type: "Point", coordinates: point } }));
    const shape = this.#shape();
    if (shape) features.push({ type: "Feature", properties: {}, geometry: shape });
    this.view.show("draft", features);
  }

  #shape() {
    const [first] = this.#anchors;
    if (!first || !this.#pen) return null;
    if (this.#tool === "circle") return geometryOf(circleOf(first, this.#pen));
    if (this.#tool === "box") {
      const [[west, south], [east, north]] = [first, this.#pen];
      return { type: "Polygon", coordinates: [[[west, south], [east, south], [east, north], [west, north], [west, south]]] };
    }
    const corners = [...this.#anchors, this.#pen];
    return corners.length < 3 ? { type: "LineString", coordinates: corners } : { type: "Polygon", coordinates: [[...corners, first]] };
  }
}
