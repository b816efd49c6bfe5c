// Matches on the map: they pulse once, then glow and fade; the newest few hundred only.
import { motion } from "./theme.js";

const CAPACITY = 300;
const PULSE_MS = 1400;
const FADED_MS = 120_000;
const PULSE_STEP_MS = 60;
const REST_STEP_MS = 2000;

export class Glow {
  /** @type {{seq:number,lon:number,lat:number,text:string,id:string,colour:()=>string,born:number}[]} */
  #matches = [];
  #drawn = 0;
  #changed = false;

  /** @param {import("./map.js").MapView} view */
  constructor(view) {
    this.view = view;
    const tick = (now) => {
      const newest = this.#matches.at(-1);
      const pulsing = newest && !motion.matches && Date.now() - newest.born < PULSE_MS + 200;
      if (this.#matches.length && now - this.#drawn >= (pulsing || this.#changed ? PULSE_STEP_MS : REST_STEP_MS)) {
        this.#drawn = now;
        this.#draw();
      }
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  add(match) {
    this.#matches.push({ ...match, born: Date.now() });
    if (this.#matches.length > CAPACITY) this.#matches.splice(0, this.#matches.length - CAPACITY);
    this.#changed = true;
  }

  bySeq(seq) {
    return this.#matches.findLast((match) => match.seq === seq);
  }

  #draw() {
    this.#changed = false;
    const now = Date.now();
    this.view.show("matches", this.#matches.map(({ seq, lon, lat, colour, born }) => {
      const age = motion.matches ? 1 : Math.min(1, (now - born) / PULSE_MS);
      const o = Math.max(0.12, 1 - (now - born) / FADED_MS);
      return { type: "Feature", properties: { seq, colour: colour(), age, o }, geometry: { type: "Point", coordinates: [lon, lat] } };
    }));
  }
}
