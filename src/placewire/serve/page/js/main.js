// Connect the parts of the page: two streams, the map, the lists, the form and the plots.
import { Cards } from "./cards.js";
import { Connection } from "./connection.js";
import { byId, el, setText } from "./dom.js";
import { Draw } from "./draw.js";
import { WishForm } from "./form.js";
import { Glow } from "./glow.js";
import { MapView } from "./map.js";
import { notify } from "./notices.js";
import { Panel } from "./panel.js";
import { PlanView } from "./plan.js";
import { Plots } from "./plots.js";
import { RecentObjects } from "./recent.js";
import { sayPoint } from "./region.js";
import { EventStream } from "./stream.js";
import { Subscriptions } from "./subscriptions.js";
import { theme } from "./theme.js";
import { linesOf, Wire } from "./wire.js";
import { sayCount, shorten } from "./words.js";

const panel = new Panel();
const view = new MapView(byId("map"), () => panel.covered);
const recent = new RecentObjects(view);
const glow = new Glow(view);
const subscriptions = new Subscriptions();
const plots = new Plots();
const plan = new PlanView(view);

function visit(shown) {
  if (shown?.lon === undefined) return;
  view.visit(shown.lon, shown.lat);
  explainObject(shown);
}

function explainObject({ id, object, text, lon, lat, seq }) {
  view.popup(lon, lat, el("div", { class: "object" },
    el("p", { class: "object-text" }, shorten(text ?? "", 400)),
    el("p", { class: "hint" }, `${shorten(id ?? object ?? "", 60)} · ${sayPoint(lon, lat)}${seq === undefined ? "" : ` · seq ${seq}`}`)));
}

const cards = new Cards(subscriptions, view, visit);
const wire = new Wire(visit);
const draw = new Draw(view);
const form = new WishForm({ subscriptions, view, draw, cards, panel, visit });

subscriptions.addEventListener("list", () => {
  const entries = [...subscriptions.entries.values()];
  setText(byId("fact-listed"), sayCount(entries.length) + (subscriptions.next === null ? "" : "+"));
  wire.offerMine(entries.some((entry) => entry.mine) && entries.some((entry) => !entry.mine));
});

view.onPick(["match-dots", "objects"], ([{ seq }]) => {
  const object = glow.bySeq(seq) ?? recent.bySeq(seq);
  if (object) explainObject(object);
});
panel.addEventListener("resize", () => view.repad());
panel.addEventListener("show", () => {
  form.showDraft();
  if (panel.current === "system") void plan.load();
});
theme.addEventListener("change", () => cards.drawRegions());

function takeStatus(status) {
  plots.add(status);
  for (const id of subscriptions.expire(status.now)) notify(`${shorten(id, 60)} expired`, "Its results stay in the list.");
  const facts = { seq: status.seq, committed: status.committed_seq, subscriptions: status.subscriptions, streams: status.streams };
  for (const [name, value] of Object.entries(facts)) setText(byId(`fact-${name}`), Number.isFinite(value) ? sayCount(value) : "–");
}

function takeLive(event, data) {
  connection.heard();
  if (event === "objects") recent.add(data.objects);
  else if (event === "status") takeStatus(data);
  else if (event === "plan") plan.changed(data);
}

function takeResult(event, data) {
  connection.heard();
  const { subscription: id, result, objects = {} } = data;
  if (subscriptions.putOff(id, () => takeResult(event, data))) return;
  const entry = subscriptions.apply(id, result, objects);
  const colour = subscriptions.colourOf(id);
  for (const { words, shown } of linesOf(entry, result, objects)) {
    wire.add({ id, colour, mine: entry?.mine ?? false, report: result.type === "report", words, shown });
    if (shown?.lon !== undefined) glow.add({ ...shown, colour: () => subscriptions.rgbOf(id) });
  }
}

async function loadSubscriptions() {
  try {
    await subscriptions.load();
  } catch (error) {
    if (error.status !== 401 && error.status !== 0) notify("Cannot list subscriptions", error.message, undefined, "bad");
  }
}

const live = new EventStream("v1/live", {
  onMessage: takeLive,
  onState: (state) => connection.set("live", state),
});
const results = new EventStream("v1/events", {
  parameters: (resumed) => (resumed ? { objects: 1 } : { objects: 1, after: "latest" }),
  onMessage: takeResult,
  onState: (state) => connection.set("results", state),
  onOpen: () => void loadSubscriptions(),
});
const connection = new Connection(() => {
  live.retryNow();
  results.retryNow();
});
live.start();
results.start();
