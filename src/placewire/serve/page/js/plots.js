// Three small plots of the last minutes: throughput, latency, lag.
import { byId, setText } from "./dom.js";
import { theme } from "./theme.js";
import { sayCount, sayMilliseconds, sayShort } from "./words.js";

const KEPT = 180; // seconds
const SAY_EVERY = 15; // so seldom the pictures' descriptions change

/** @typedef {{name:string, colour:string, read:(status:any) => number|null}} Line */

const PLOTS = [
  { id: "throughput", say: sayShort, lines: [
    { name: "objects", colour: "plot-first", read: (s) => s.objects_per_s },
    { name: "results", colour: "plot-second", read: (s) => s.results_per_s }],
    head: (s) => `${sayShort(s.objects_per_s)} in · ${sayShort(s.results_per_s)} out /s` },
  { id: "latency", say: sayMilliseconds, lines: [
    { name: "p50", colour: "plot-first", read: (s) => s.latency_ms?.p50 },
    { name: "p99", colour: "plot-second", read: (s) => s.latency_ms?.p99 }],
    head: (s) => `p50 ${sayMilliseconds(s.latency_ms?.p50)} · p99 ${sayMilliseconds(s.latency_ms?.p99)}` },
  { id: "lag", say: sayShort, lines: [{ name: "events", colour: "plot-first", read: (s) => s.lag_events }],
    head: (s) => `${sayCount(s.lag_events ?? 0)} ${s.lag_events === 1 ? "event" : "events"} behind` },
];

class Plot {
  #chart = null;
  #ticks = 0;

  constructor(shape) {
    this.shape = shape;
    this.box = byId(`plot-${shape.id}`);
    this.data = [[], ...shape.lines.map(() => [])];
    new ResizeObserver(() => this.#make()).observe(this.box);
    theme.addEventListener("change", () => this.#make());
  }

  add(seconds, status) {
    this.data[0].push(seconds);
    this.shape.lines.forEach((line, index) => {
      const value = line.read(status);
      this.data[index + 1].push(Number.isFinite(value) ? value : null);
    });
    if (this.data[0].length > KEPT) for (const column of this.data) column.splice(0, column.length - KEPT);
    const head = this.shape.head(status);
    setText(byId(`said-${this.shape.id}`), head);
    if (this.#ticks++ % SAY_EVERY === 0) this.box.setAttribute("aria-label", `${this.shape.id}, last three minutes; now ${head}`);
    this.#chart?.setData(this.data);
  }

  #make() {
    this.#chart?.destroy();
    this.#chart = null;
    const { clientWidth: width, clientHeight: height } = this.box;
    if (!width || !height) return;
    const quiet = theme.colour("muted");
    this.#chart = new uPlot({
      width, height, cursor: { show: false }, legend: { show: false }, padding: [7, 0, 7, 0],
      scales: { x: { range: (_, __, max) => [max - KEPT, max] }, y: { range: (_, __, max) => [0, Math.max(1, (max ?? 0) * 1.15)] } },
      axes: [{ show: false }, { side: 1, size: this.shape.id === "latency" ? 46 : 34, gap: 3, font: "10px system-ui, sans-serif", stroke: quiet, ticks: { show: false },
        grid: { stroke: theme.colour("line"), width: 1 }, splits: (_, __, ___, max) => [0, max / 2, max * 0.99].map((v) => (max <= 2 ? Math.round(v * 10) / 10 : Math.round(v))),
        values: (_, splits) => splits.map((value) => this.shape.say(value)) }],
      series: [{}, ...this.shape.lines.map((line) => ({ stroke: theme.colour(line.colour), width: 1.6, points: { show: false }, spanGaps: false }))],
    }, this.data, this.box);
  }
}

export class Plots {
  #plots = PLOTS.map((shape) => new Plot(shape));

  /** One second's status of the service. */
  add(status) {
    for (const plot of this.#plots) plot.add(Date.now() / 1000, status);
  }
}
