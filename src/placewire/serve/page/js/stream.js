// One stream of events that stays open: it reads, notices silence, comes back and resumes where it was.
import { address, key, refusalOf } from "./api.js";
import { MessageParser } from "./sse.js";

const SILENCE_MS = 40_000; // a well server says something at least every 15 s
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;

/**
 * @typedef {{name:"connecting"|"open"|"waiting"|"refused", retryAt?:number, message?:string, status?:number}} StreamState
 */
export class EventStream {
  /** @type {AbortController|null} */
  #attempt = null;
  #wake = null;
  #failures = 0;
  #running = false;
  #lastId = null;

  /**
   * @param {string} path
   * @param {{parameters?: () => Record<string, any>, onMessage: (event:string, data:any) => void,
   *   onState: (state: StreamState) => void, onOpen?: (resumed: boolean) => void}} hooks
   */
  constructor(path, hooks) {
    this.path = path;
    this.hooks = hooks;
    key.addEventListener("change", () => this.retryNow());
  }

  start() {
    if (this.#running) return;
    this.#running = true;
    void this.#run();
  }

  /** Another try at once, instead of when it is due. */
  retryNow() {
    this.#failures = 0;
    this.#attempt?.abort();
    this.#wake?.();
  }

  async #run() {
    for (;;) {
      let refusal = null;
      try {
        refusal = await this.#read();
      } catch {
        // The connection broke; what follows says so.
      }
      if (refusal && refusal.status >= 400 && refusal.status < 500 && refusal.status !== 429) {
        this.hooks.onState({ name: "refused", message: refusal.message, status: refusal.status });
        await this.#pause(60_000);
        continue;
      }
      const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.#failures) * (0.8 + 0.4 * Math.random());
      this.#failures = Math.min(this.#failures + 1, 10);
      this.hooks.onState({ name: "waiting", retryAt: Date.now() + wait, message: refusal?.message, status: refusal?.status ?? 0 });
      await this.#pause(wait);
    }
  }

  async #read() {
    this.hooks.onState({ name: "connecting" });
    const attempt = new AbortController();
    this.#attempt = attempt;
    let timer = setTimeout(() => attempt.abort(), SILENCE_MS);
    try {
      const resumed = this.#lastId !== null;
      const response = await fetch(address(this.path, this.hooks.parameters?.(resumed) ?? {}), {
        headers: { Accept: "text/event-stream", ...key.headers, ...(resumed ? { "Last-Event-ID": this.#lastId } : {}) },
        signal: attempt.signal,
        cache: "no-store",
      });
      if (!response.ok || !response.body) return await refusalOf(response);
      this.#failures = 0;
      this.hooks.onState({ name: "open" });
      this.hooks.onOpen?.(resumed);
      const parser = new MessageParser();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return null;
        clearTimeout(timer);
        timer = setTimeout(() => attempt.abort(), SILENCE_MS);
        for (const message of parser.push(value)) this.#hand(message);
        if (parser.lastId !== null) this.#lastId = parser.lastId;
      }
    } finally {
      clearTimeout(timer);
      this.#attempt = null;
    }
  }

  #hand(message) {
    let data;
    try {
      data = JSON.parse(message.data);
    } catch {
      console.warn(`${this.path}: event '${message.event}' is not JSON, got ${message.data.slice(0, 80)}`);
      return;
    }
    this.hooks.onMessage(message.event, data);
  }

  #pause(ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve(undefined);
      };
    });
  }
}
