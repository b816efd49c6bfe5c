// The latest objects: a ring of bounded size, shown on the map and fading with age.
import { motion, theme } from "./theme.js";

const CAPACITY = 4000;
const FADED_MS = 90_000;
const GONE_MS = 600_000;
const REDRAW_MS = 300;
const FAINTEST = 0.16;

/** @typedef {{seq:number,id:string,lon:number,lat:number,text:string,ts?:string,born?:number}} Thing an object as it is shown */

export class RecentObjects {
  /** @type {Thing[]} */
  #ring = [];
  #next = 0;
  #changed = false;
  #drawn = 0;
  total = 0;

  /** @param {import("./map.js").MapView} view */
  constructor(view) {
    this.view = view;
    const tick = (now) => {
      const due = this.#changed ? REDRAW_MS : motion.matches ? 10_000 : 3000;
      if (now - this.#drawn >= due) {
        this.#drawn = now;
        this.#draw();
      }
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
    theme.addEventListener("change", () => (this.#changed = true));
  }

  /** @param {Thing[]} objects */
  add(objects) {
    const born = Date.now();
    for (const { seq, id, lon, lat, text, ts } of objects) {
      if (!Number.isFinite(lon) || !Number.isFinite(lat)) continue;
      this.#ring[this.#next] = { seq, id, lon, lat, text, ts, born };
      this.#next = (this.#next + 1) % CAPACITY;
      this.total += 1;
    }
    this.#changed = true;
  }

  bySeq(seq) {
    return this.#ring.find((object) => object.seq === seq);
  }

  #draw() {
    const wasChanged = this.#changed;
    this.#changed = false;
    if (!wasChanged && this.#ring.length === 0) return;
    const now = Date.now();
    const features = [];
    for (const { seq, lon, lat, born } of this.#ring) {
      const age = now - born;
      if (age > GONE_MS) continue;
      const o = Math.max(FAINTEST, 0.9 - (0.9 - FAINTEST) * (age / FADED_MS));
      features.push({ type: "Feature", properties: { seq, o: Math.round(o * 50) / 50 }, geometry: { type: "Point", coordinates: [lon, lat] } });
    }
    this.view.show("objects", features);
  }
}
