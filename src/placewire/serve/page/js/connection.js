// How it stands with the service: live, coming back, gone, or asking for a key. Said plainly.
import { key } from "./api.js";
import { byId, setText } from "./dom.js";
import { notify } from "./notices.js";
import { sayTime } from "./words.js";

const SAID = { live: "Live", connecting: "Connecting", waiting: "No answer", refused: "Refused", key: "Key needed" };

export class Connection {
  /** @type {Map<string, import("./stream.js").StreamState>} */
  #states = new Map();
  #heard = null;
  #wasDead = false;
  #opened = false;

  /** @param {() => void} retry */
  constructor(retry) {
    byId("retry").addEventListener("click", retry);
    setInterval(() => this.#draw(), 1000);
    this.#keyDialog();
    this.#draw();
  }

  /** A stream of that name changed its state. */
  set(name, state) {
    this.#states.set(name, state);
    this.#draw();
  }

  heard() {
    this.#heard = new Date();
  }

  get #summary() {
    const states = [...this.#states.values()];
    const refused = states.find((state) => state.name === "refused");
    if (refused) return { name: refused.status === 401 ? "key" : "refused", state: refused };
    const waiting = states.find((state) => state.name === "waiting");
    if (waiting) return { name: "waiting", state: waiting };
    if (states.length && states.every((state) => state.name === "open")) return { name: "live", state: states[0] };
    return { name: "connecting", state: null };
  }

  #draw() {
    const { name, state } = this.#summary;
    const pill = byId("connection");
    const failing = this.#wasDead && name === "connecting";
    pill.dataset.state = failing ? "waiting" : name;
    setText(byId("connection-said"), failing ? SAID.waiting : SAID[name]);
    const banner = byId("banner");
    if (name === "live") {
      if (this.#wasDead && this.#opened) notify("The service is back", "What was missed follows.");
      this.#wasDead = false;
      this.#opened = true;
      banner.hidden = true;
    } else if (name === "waiting" || name === "refused") {
      this.#wasDead = true;
      banner.hidden = false;
      this.#explain(name, state);
    } else if (name === "key") {
      this.#wasDead = false;
      banner.hidden = false;
      setText(byId("banner-title"), "The service asks for a key");
      setText(byId("banner-detail"), state.message ?? "");
      byId("retry").hidden = true;
      byId("enter-key").hidden = false;
    }
  }

  #explain(name, state) {
    byId("retry").hidden = false;
    byId("enter-key").hidden = !(name === "refused" && state.status === 403);
    const answered = name === "refused" || state.status > 0;
    setText(byId("banner-title"), answered ? "The service refuses" : "The service does not answer");
    const last = this.#heard ? `Last heard ${sayTime(this.#heard)}. ` : "";
    const seconds = state.retryAt ? Math.max(0, Math.ceil((state.retryAt - Date.now()) / 1000)) : null;
    const next = seconds === null ? "" : seconds > 0 ? `Trying again in ${seconds} s.` : "Trying again.";
    setText(byId("banner-detail"), `${answered && state.message ? `${state.message}. ` : last}${next}`);
  }

  #keyDialog() {
    const dialog = /** @type {HTMLDialogElement} */ (byId("key-dialog"));
    const field = /** @type {HTMLInputElement} */ (byId("key"));
    const open = () => {
      if (dialog.open) return;
      field.value = "";
      setText(byId("key-said"), key.present ? "The key that was given is not accepted." : "It was made by the people who run this service.");
      dialog.showModal();
    };
    key.addEventListener("asked", open);
    byId("enter-key").addEventListener("click", open);
    byId("key-cancel").addEventListener("click", () => dialog.close());
    byId("key-form").addEventListener("submit", (event) => {
      event.preventDefault();
      const keep = /** @type {HTMLInputElement} */ (byId("key-keep")).checked;
      dialog.close();
      key.set(field.value.trim(), keep);
    });
  }
}
