// The subscriptions that are live here: what they wait for, in which colour, and how their results stand.
import { Refusal, service } from "./api.js";
import { device } from "./memory.js";
import { Standing } from "./standing.js";
import { HUES, theme } from "./theme.js";

const PAGE_SIZE = 100;
const MOST_MINE = 200;
const EARLIEST = 500;
const RECONCILE_MS = 4000;
const MOST_RECONCILED = 24; // ranked lists that are asked for at once, when the page opens

/**
 * @typedef {{id:string, kind:string, wish:Record<string, any>, results:number, mine:boolean, hue:number, order:number,
 *   standing:Standing|null, reconcileAt:number}} Entry
 */

/** Tells of `list` (which there are), `standing` (detail: the entry) and `results` (detail: the entry). */
export class Subscriptions extends EventTarget {
  /** @type {Map<string, Entry>} */
  entries = new Map();
  /** The next page, when there are more than are shown. @type {string|null} */
  next = null;
  #mine = new Set(device.read("mine", []));
  /** What to do with results that came before a reply that may say whose they are. @type {(() => void)[]} */
  #early = [];
  #learners = 0;
  #hues = 0;
  #orders = 0;

  /** The live ones from the service: those made here, and a page of the others that this key may see. */
  async load() {
    await this.#learning(() => this.#list());
    this.#tell("list");
    await Promise.all(this.sorted().filter((entry) => entry.standing).slice(0, MOST_RECONCILED).map((entry) => this.reconcile(entry)));
  }

  async #list() {
    const { subscriptions, next } = await service.subscriptions(null, PAGE_SIZE);
    const seen = new Map(subscriptions.map((listed) => [listed.id, listed]));
    for (const id of [...this.#mine].slice(-20)) {
      if (!seen.has(id)) await this.#fetch(id, seen);
    }
    for (const id of this.entries.keys()) {
      if (seen.get(id)?.status !== "live") this.entries.delete(id);
    }
    for (const listed of seen.values()) this.#take(listed);
    this.next = next;
  }

  /** Does what may tell whose results are; those that come meanwhile are looked at afterwards. */
  async #learning(work) {
    this.#learners += 1;
    try {
      return await work();
    } finally {
      this.#learners -= 1;
      if (this.#learners === 0) for (const late of this.#early.splice(0)) late();
    }
  }

  async #fetch(id, seen) {
    try {
      const listed = await service.subscription(id);
      if (listed.status === "live") seen.set(id, listed);
      else this.#forget(id);
    } catch (error) {
      if (!(error instanceof Refusal) || error.status !== 404) throw error;
      this.#forget(id);
    }
  }

  async loadMore() {
    if (this.next === null) return;
    const { subscriptions, next } = await service.subscriptions(this.next, PAGE_SIZE);
    for (const listed of subscriptions) this.#take(listed);
    this.next = next;
    this.#tell("list");
  }

  /** Subscribes; a name replaces a live one only when it was chosen by hand. */
  async add(wish, name, chosen) {
    const id = chosen ? name : this.#freeName(name);
    const reply = await this.#learning(async () => {
      const said = await service.subscribe({ id, ...wish });
      this.#remember(said.id);
      this.entries.delete(said.id);
      this.#take({ id: said.id, kind: wish.kind, status: "live", subscription: wish, results: 0 });
      return said;
    });
    this.#tell("list");
    return { entry: this.entries.get(reply.id), replaced: reply.replaced };
  }

  #freeName(name) {
    // Not all names are known here: one by chance is as good as certainly free.
    if (this.next !== null) return `${name}-${Math.random().toString(36).slice(2, 7)}`;
    let id = name;
    for (let n = 2; this.entries.has(id); n += 1) id = `${name}-${n}`;
    return id;
  }

  async end(id) {
    await service.unsubscribe(id);
    this.entries.delete(id);
    this.#forget(id);
    this.#tell("list");
  }

  /** Lets go of those whose time is over by the clock of the events. @returns {string[]} which of those made here */
  expire(now) {
    const over = [...this.entries.values()].filter(({ wish }) => wish.expires !== undefined && Date.parse(wish.expires) <= Date.parse(now ?? ""));
    for (const { id } of over) this.entries.delete(id);
    if (over.length) this.#tell("list");
    const mine = over.filter((entry) => entry.mine).map(({ id }) => id);
    for (const id of mine) this.#forget(id);
    return mine;
  }

  /** Puts work on a result off while a reply may still say whose it is. @returns {boolean} whether it was put off */
  putOff(id, work) {
    if (this.#learners === 0 || this.entries.has(id) || this.#early.length >= EARLIEST) return false;
    this.#early.push(work);
    return true;
  }

  /** Counts a result and applies it to the standing. @returns {Entry|undefined} */
  apply(id, result, details) {
    const entry = this.entries.get(id);
    if (!entry) return undefined;
    entry.results += 1;
    if (entry.standing) {
      entry.standing.apply(result, details);
      if (result.type === "update") this.#reconcileSoon(entry);
      this.#tell("standing", entry);
    }
    this.#tell("results", entry);
    return entry;
  }

  /** Takes the list as the service has it: what was missed is there, what was wrongly dropped is back. */
  async reconcile(entry) {
    try {
      const { standing } = entry;
      if (!standing) return;
      standing.replace(await service.standing(entry.id, false));
      if (standing.asksForTexts()) standing.replace(await service.standing(entry.id, true));
      this.#tell("standing", entry);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error; // the streams say what is wrong with the service
    }
  }

  #reconcileSoon(entry) {
    if (entry.reconcileAt) return;
    entry.reconcileAt = setTimeout(() => {
      entry.reconcileAt = 0;
      if (this.entries.get(entry.id) === entry) void this.reconcile(entry);
    }, RECONCILE_MS);
  }

  #take(listed) {
    if (listed.status !== "live") return;
    const wish = { kind: listed.kind, ...listed.subscription };
    const old = this.entries.get(listed.id);
    if (old) {
      old.results = Math.max(old.results, listed.results ?? 0);
      return;
    }
    const ranked = wish.kind !== "boolean";
    this.entries.set(listed.id, {
      id: listed.id, kind: wish.kind, wish, results: listed.results ?? 0, mine: this.#mine.has(listed.id),
      hue: this.#hues++ % HUES, order: this.#orders++, standing: ranked ? new Standing(wish.kind, wish.k) : null, reconcileAt: 0,
    });
  }

  /** Those made here first, the newest first. */
  sorted() {
    return [...this.entries.values()].sort((a, b) => Number(b.mine) - Number(a.mine) || b.order - a.order);
  }

  /** The colour of a subscription, listed or not, as CSS has it. */
  colourOf(id) {
    const hue = this.entries.get(id)?.hue ?? [...id].reduce((sum, letter) => (sum * 31 + letter.codePointAt(0)) % 9973, 7) % HUES;
    return `hue-${hue}`;
  }

  rgbOf(id) {
    return theme.colour(this.colourOf(id));
  }

  #remember(id) {
    this.#mine.delete(id);
    this.#mine.add(id);
    this.#store();
  }

  #forget(id) {
    this.#mine.delete(id);
    this.#store();
  }

  #store() {
    this.#mine = new Set([...this.#mine].slice(-MOST_MINE));
    device.set("mine", JSON.stringify([...this.#mine]));
  }

  #tell(type, detail = undefined) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
