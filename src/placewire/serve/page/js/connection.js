// The state of the connection, and the dialog for an API key.
import { key, Refusal, service } from "./api.js";
import { byId, setText } from "./dom.js";
import { notify } from "./notices.js";
import { sayTime } from "./words.js";

const HEALTH_MS = 10_000;
const STARTING_MS = 1000;
const SAID = { live: "Live", starting: "Starting", ill: "Degraded", connecting: "Connecting", waiting: "Disconnected", refused: "Rejected", key: "Key required" };

export class Connection {
  /** @type {Map<string, import("./stream.js").StreamState>} */
  #states = new Map();
  #heard = null;
  #wasDead = false;
  #opened = false;
  /** The error of the last health check. @type {string|null} */
  #illness = null;
  /** Whether the pipeline has not run a batch yet. */
  #starting = false;

  /** @param {() => void} retry */
  constructor(retry) {
    byId("retry").addEventListener("click", retry);
    setInterval(() => this.#draw(), 1000);
    setInterval(() => { if (!document.hidden && this.#alive) void this.#askHealth(); }, HEALTH_MS);
    this.#keyDialog();
    this.#draw();
  }

  /** A stream of that name changed its state. */
  set(name, state) {
    this.#states.set(name, state);
    this.#draw();
    if (state.name === "open") void this.#askHealth();
  }

  heard() {
    this.#heard = new Date();
  }

  get #alive() {
    return this.#summary.name === "live" || this.#summary.name === "ill";
  }

  /** Check the health: a stream can stay open while the pipeline is down. */
  async #askHealth() {
    try {
      const health = await service.health();
      this.#illness = null;
      this.#starting = health?.pipeline === "starting";
      if (this.#starting) setTimeout(() => void this.#askHealth(), STARTING_MS);
    } catch (error) {
      this.#illness = error instanceof Refusal && error.status === 503 ? error.message : null;
    }
    this.#draw();
  }

  get #summary() {
    const states = [...this.#states.values()];
    const refused = states.find((state) => state.name === "refused");
    if (refused) return { name: refused.status === 401 ? "key" : "refused", state: refused };
    const waiting = states.find((state) => state.name === "waiting");
    if (waiting) return { name: "waiting", state: waiting };
    if (states.length && states.every((state) => state.name === "open")) return { name: this.#illness === null ? "live" : "ill", state: states[0] };
    return { name: "connecting", state: null };
  }

  #draw() {
    const { name, state } = this.#summary;
    const pill = byId("connection");
    const failing = this.#wasDead && name === "connecting";
    pill.dataset.state = failing ? "waiting" : name;
    const starting = name === "live" && this.#starting;
    pill.classList.toggle("starting", starting);
    setText(byId("connection-said"), failing ? SAID.waiting : starting ? SAID.starting : SAID[name]);
    const banner = byId("banner");
    if (name === "live") {
      if (this.#wasDead && this.#opened) notify("Reconnected", "Missed results follow.");
      this.#wasDead = false;
      this.#opened = true;
      banner.hidden = true;
    } else if (name === "ill") {
      banner.hidden = false;
      byId("retry").hidden = true;
      byId("enter-key").hidden = true;
      setText(byId("banner-title"), "The server is degraded");
      setText(byId("banner-detail"), `${this.#illness}`);
    } else if (name === "waiting" || name === "refused") {
      this.#wasDead = true;
      banner.hidden = false;
      this.#explain(name, state);
    } else if (name === "key") {
      this.#wasDead = false;
      banner.hidden = false;
      setText(byId("banner-title"), "API key required");
      setText(byId("banner-detail"), state.message ?? "");
      byId("retry").hidden = true;
      byId("enter-key").hidden = false;
    }
  }

  #explain(name, state) {
    byId("retry").hidden = false;
    byId("enter-key").hidden = !(name === "refused" && state.status === 403);
    const answered = name === "refused" || state.status > 0;
    setText(byId("banner-title"), answered ? "The server rejected the request" : "The server does not answer");
    const last = this.#heard ? `Last message ${sayTime(this.#heard)}. ` : "";
    const seconds = state.retryAt ? Math.max(0, Math.ceil((state.retryAt - Date.now()) / 1000)) : null;
    const next = seconds === null ? "" : seconds > 0 ? `Retrying in ${seconds} s.` : "Retrying.";
    setText(byId("banner-detail"), `${answered && state.message ? `${state.message}. ` : last}${next}`);
  }

  #keyDialog() {
    const dialog = /** @type {HTMLDialogElement} */ (byId("key-dialog"));
    const field = /** @type {HTMLInputElement} */ (byId("key"));
    let declined = false;
    const open = () => {
      if (dialog.open) return;
      field.value = "";
      setText(byId("key-said"), key.present ? "The server rejected this key." : "Ask the operator of this server for a key.");
      dialog.showModal();
    };
    key.addEventListener("asked", () => { if (!declined) open(); });
    dialog.addEventListener("close", () => (declined = true));
    byId("enter-key").addEventListener("click", open);
    byId("key-cancel").addEventListener("click", () => dialog.close());
    byId("key-form").addEventListener("submit", (event) => {
      event.preventDefault();
      const keep = /** @type {HTMLInputElement} */ (byId("key-keep")).checked;
      dialog.addEventListener("close", () => {
        declined = false;
        key.set(field.value.trim(), keep);
      }, { once: true });
      dialog.close();
    });
  }
}
