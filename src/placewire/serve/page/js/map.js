// The map: its ground, its sources, where the visible middle is, and what lies under a click.
import * as maplibre from "../vendor/maplibre-gl/maplibre-gl.mjs";
import { el } from "./dom.js";
import { gridOf } from "./grid.js";
import { makeStyle } from "./mapstyle.js";
import { device } from "./memory.js";
import { narrow } from "./panel.js";
import { motion, theme } from "./theme.js";

const NOWHERE = { type: "FeatureCollection", features: [] };
const PANEL = 400; // the part of a wide window that lists cover
const WORLD = 512; // pixels around the world at zoom 0
const [FARTHEST, CLOSEST] = [-0.6, 17];
// At first all cities of the world, from Honolulu to Auckland, in the middle of what lists and plots leave free.
const room = window.innerWidth - (narrow.matches ? 0 : PANEL);
const START = { lon: 8, lat: narrow.matches ? 19 : 12, zoom: Math.min(1.6, within(Math.log2(room / WORLD) - 0.03, FARTHEST, CLOSEST)) };

function within(value, least, most) {
  return Math.min(most, Math.max(least, value));
}

export class MapView {
  /** What each source shows, to show it again after a change of colours. @type {Map<string, any>} */
  #shown = new Map();
  /** @type {Map<string, boolean>} */
  #visible = new Map();
  #popup = null;
  #ready = false;
  /** @type {maplibre.Map|null} null where the browser has no WebGL: lists and forms work without */
  map = null;

  /** @param {HTMLElement} container @param {() => {top:number,left:number,bottom:number,right:number}} padding */
  constructor(container, padding) {
    this.container = container;
    this.padding = padding;
    const view = { ...START, ...device.read("view", {}) };
    try {
      this.map = new maplibre.Map({
        container,
        style: makeStyle(),
        center: [Number(view.lon) || 0, Number(view.lat) || 0],
        zoom: Number(view.zoom) || START.zoom,
        maxZoom: CLOSEST,
        minZoom: FARTHEST,
        // By itself the map would fill the window from pole to pole: on a phone, whose sheet covers half of it, that is half a world.
        transformConstrain: ({ lng, lat }, zoom) => ({
          center: new maplibre.LngLat(lng, within(lat, -85, 85)), zoom: within(zoom, FARTHEST, CLOSEST) }),
        attributionControl: false,
        dragRotate: false,
        pitchWithRotate: false,
        touchPitch: false,
        fadeDuration: motion.matches ? 0 : 200,
        refreshExpiredTiles: false,
      });
    } catch (error) {
      container.append(el("p", { class: "map-missing", role: "note" },
        "The map requires WebGL, which this browser does not support. Lists, forms and plots work without it."));
      console.warn(`cannot draw the map: ${error instanceof Error ? error.message.slice(0, 120) : error}`);
      return;
    }
    const map = this.map;
    map.keyboard.disableRotation();
    map.touchZoomRotate.disableRotation();
    map.addControl(new maplibre.NavigationControl({ showCompass: false }), "top-right");
    map.addControl(new maplibre.ScaleControl({ maxWidth: 110 }), "bottom-right");
    map.setPadding(padding());
    map.on("load", () => {
      this.#ready = true;
      this.#redraw();
      container.dataset.ready = "yes";
    });
    map.on("moveend", () => this.#moved());
    theme.addEventListener("change", () => this.#recolour());
  }

  /** Calls back with what a click that draws nothing hit: properties of features of these layers. */
  onPick(layers, pick) {
    this.map?.on("click", (event) => {
      if (!this.#ready || this.container.dataset.drawing) return;
      const { x, y } = event.point;
      const hits = this.map.queryRenderedFeatures([[x - 7, y - 7], [x + 7, y + 7]], { layers });
      if (hits.length) pick(hits.map((hit) => hit.properties));
    });
  }

  /** Shows features in a source from now on. */
  show(source, features) {
    const data = Array.isArray(features) ? { type: "FeatureCollection", features } : features;
    this.#shown.set(source, data);
    if (this.#ready) this.map.getSource(source)?.setData(data);
  }

  setVisible(layer, visible) {
    this.#visible.set(layer, visible);
    if (this.#ready) this.map.setLayoutProperty(layer, "visibility", visible ? "visible" : "none");
  }

  get ready() {
    return this.#ready;
  }

  /** The middle of what is not covered by the panel, [lon, lat]. */
  get centre() {
    const centre = this.map?.getCenter();
    return centre ? [centre.lng, centre.lat] : [START.lon, START.lat];
  }

  /** Two corners about the middle that take this share of what is seen. */
  cornersAround(share) {
    if (!this.map) return [[START.lon - 10, START.lat - 10], [START.lon + 10, START.lat + 10]];
    const middle = this.map.project(this.centre);
    const { top, left, bottom, right } = this.padding();
    const wide = (this.container.clientWidth - left - right) * share * 0.5;
    const high = (this.container.clientHeight - top - bottom) * share * 0.5;
    return [[-1, 1], [1, -1]].map(([x, y]) => this.map.unproject([middle.x + x * wide, middle.y + y * high]).toArray());
  }

  fit([west, south, east, north]) {
    this.map?.fitBounds([[west, south], [east, north]], {
      padding: 48, maxZoom: 13, duration: motion.matches ? 0 : 700 });
  }

  visit(lon, lat, closest = 9) {
    this.map?.easeTo({ center: [lon, lat], zoom: Math.max(this.map.getZoom(), closest), duration: motion.matches ? 0 : 700 });
  }

  /** @param {Node} content */
  popup(lon, lat, content) {
    if (!this.map) return;
    this.#popup?.remove();
    this.#popup = new maplibre.Popup({ maxWidth: "280px", focusAfterOpen: false, offset: 10 })
      .setLngLat([lon, lat]).setDOMContent(content).addTo(this.map);
  }

  repad() {
    this.map?.setPadding(this.padding());
  }

  #moved() {
    const { lng, lat } = this.map.getCenter();
    device.set("view", JSON.stringify({ lon: lng, lat, zoom: this.map.getZoom() }));
    this.#drawGrid();
  }

  #drawGrid() {
    if (this.#ready) this.show("grid", gridOf(this.map.getBounds().toArray().flat(), this.map.getZoom()));
  }

  #redraw() {
    for (const [source, data] of this.#shown) this.map.getSource(source)?.setData(data ?? NOWHERE);
    for (const [layer, visible] of this.#visible) {
      this.map.setLayoutProperty(layer, "visibility", visible ? "visible" : "none");
    }
    this.#drawGrid();
  }

  /** Another theme: the same sources, other paints. */
  #recolour() {
    if (!this.#ready) return;
    for (const layer of makeStyle().layers) {
      for (const [name, value] of Object.entries(layer.paint ?? {})) this.map.setPaintProperty(layer.id, name, value);
    }
  }
}
