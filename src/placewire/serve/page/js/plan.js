// The plan: its leaves on the map, coloured by worker and shaded by load, and its changes.
import { Refusal, service } from "./api.js";
import { byId, el, setText } from "./dom.js";
import { notify } from "./notices.js";
import { geometryOf } from "./region.js";
import { HUES, theme } from "./theme.js";
import { sayPlural, sayTime } from "./words.js";

const AGAIN_MS = 10_000;
const MOST_LEAVES = 5000;
const MOST_NAMES = 400;
const LAYERS = ["leaves", "leaf-lines", "leaf-names"];

export class PlanView {
  #button = byId("plan-toggle");
  #plan = null;
  #shown = false;
  #timer = 0;

  /** @param {import("./map.js").MapView} view */
  constructor(view) {
    this.view = view;
    this.#button.addEventListener("click", () => this.toggle());
    theme.addEventListener("change", () => this.#draw());
  }

  get shown() {
    return this.#shown;
  }

  toggle(shown = !this.#shown) {
    this.#shown = shown;
    this.#button.setAttribute("aria-pressed", String(shown));
    for (const layer of LAYERS) this.view.setVisible(layer, shown);
    clearInterval(this.#timer);
    byId("legend").hidden = !shown;
    if (!shown) return;
    void this.load();
    this.#timer = setInterval(() => { if (!document.hidden) void this.load(); }, AGAIN_MS);
  }

  /** The plan as it is now, on the map if it is shown and in the System tab. */
  async load() {
    try {
      this.#plan = await service.plan();
      this.#draw();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      setText(byId("plan-line"), error.status === 403 ? "Only admin keys can read the plan." : `Cannot read the plan: ${error.message}`);
      if (this.#shown) notify("Cannot show the plan", byId("plan-line").textContent ?? "", undefined, "bad");
      if (this.#shown && error.status) this.toggle(false);
    }
  }

  /** Handle the event that another plan is in use. @param {{name:string,version:number,line:string}} change */
  changed(change) {
    const act = this.#shown ? undefined : { label: "Show", act: () => this.toggle(true) };
    notify(`Plan changed: ${change.name}, version ${change.version}`, change.line, act, "plan");
    void this.load();
  }

  #draw() {
    const plan = this.#plan;
    if (!plan) return;
    const leaves = isCut(plan) ? plan.leaves.slice(0, MOST_LEAVES) : [];
    const most = Math.max(1e-9, ...leaves.map((leaf) => leaf.load));
    const colours = Array.from({ length: HUES }, (_, hue) => theme.colour(`hue-${hue}`));
    const features = leaves.map((leaf) => ({
      type: "Feature", geometry: geometryOf({ box: leaf.box }),
      properties: { colour: colours[leaf.worker % HUES], shade: 0.04 + 0.2 * Math.sqrt(leaf.load / most) },
    }));
    this.view.show("leaves", features);
    const named = leaves.length > MOST_NAMES ? [] : leaves;
    this.view.show("leaf-names", named.map((leaf) => {
      const [west, south, east, north] = leaf.box;
      return { type: "Feature", properties: { name: `worker ${leaf.workers.join(", ")}\n${share(leaf.load)}` },
        geometry: { type: "Point", coordinates: [(west + east) / 2, (Math.max(-80, south) + Math.min(80, north)) / 2] } };
    }));
    this.#describe(plan);
  }

  #describe(plan) {
    const said = isCut(plan) ? `${sayPlural(plan.leaves.length, "leaf", "leaves")}, ${sayPlural(plan.workers, "worker")}` : sayUncut(plan);
    setText(byId("plan-line"), `${plan.name}, version ${plan.version}: ${said}`);
    const workers = (plan.loads ?? []).slice(0, 64).map((load, worker) => [worker, load]);
    setText(byId("legend-said"), isCut(plan) ? (workers.length ? "" : "No load measured yet.") : `Plan ${plan.name}: ${said}`);
    byId("legend-title").hidden = !isCut(plan) && !workers.length;
    const most = Math.max(1e-9, ...workers.map(([, load]) => load));
    byId("workers").replaceChildren(...workers.map(([worker, load]) => el("li", { class: "bar", vars: { hue: `var(--hue-${worker % HUES})` } },
      el("span", { class: "bar-term" }, `worker ${worker}`), el("span", { class: "bar-count" }, share(load)),
      el("span", { class: "bar-track", "aria-hidden": "true" }, el("span", { class: "bar-fill", vars: { share: load / most } })))));
    byId("legend-workers").replaceChildren(...workers.slice(0, 12).map(([worker, load]) => el("li", { vars: { hue: `var(--hue-${worker % HUES})` } },
      el("span", { class: "swatch", "aria-hidden": "true" }), `${worker}`, el("span", { class: "legend-share" }, share(load)))));
    byId("plan-events").replaceChildren(...(plan.changes ?? []).slice(-20).reverse().map(({ at, line }) => el("li", {},
      el("time", { datetime: at }, sayTime(new Date(at))), " ", String(line))));
    byId("plan-events-empty").hidden = (plan.changes ?? []).length > 0;
  }
}

/** Whether the plan has more than one leaf. */
function isCut(plan) {
  return plan.leaves.length > 1;
}

function sayUncut({ workers, leaves }) {
  if (leaves[0]?.terms) return `partitioned by term. Each of the ${workers} workers has its own terms.`;
  return workers > 1
    ? `not partitioned. Each of the ${workers} workers matches a share of the objects against all subscriptions.`
    : "not partitioned. One worker matches all objects against all subscriptions.";
}

function share(load) {
  return `${Math.round(load * 100)} %`;
}
