// Talking to the service: its key, its requests, and what it refuses.
import { device, tab } from "./memory.js";

const BASE = new URL(".", document.baseURI);
const PATIENCE_MS = 20_000;

/** What the service refused, in its own words; status 0 when it did not answer. */
export class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.name = "Refusal";
    this.status = status;
  }
}

/** The API key of this browser, if one was needed. */
class Key extends EventTarget {
  #value = tab.get("key") ?? device.get("key") ?? "";

  get headers() {
    return this.#value ? { Authorization: `Bearer ${this.#value}` } : {};
  }

  get present() {
    return this.#value !== "";
  }

  /** @param {string} value @param {boolean} keep on this device, not only in this tab */
  set(value, keep) {
    this.#value = value;
    device.drop("key");
    tab.drop("key");
    if (value) (keep ? device : tab).set("key", value);
    this.dispatchEvent(new Event("change"));
  }

  /** Says that the service asked for a key. */
  ask() {
    this.dispatchEvent(new Event("asked"));
  }
}

export const key = new Key();

export function address(path, parameters = {}) {
  const url = new URL(path, BASE);
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, String(value));
  return url;
}

/** What a response that is not well says, for people. */
export async function refusalOf(response) {
  let said = "";
  try {
    const body = await response.json();
    said = String(body.error ?? body.status ?? "");
  } catch {
    // Not JSON: a proxy's page, say. Its status has to do.
  }
  if (response.status === 401) key.ask();
  return new Refusal(response.status, said || `the server answered ${response.status} ${response.statusText}`.trim());
}

async function request(method, path, { parameters, body } = {}) {
  let response;
  try {
    response = await fetch(address(path, parameters), {
      method,
      headers: { ...key.headers, ...(body === undefined ? {} : { "Content-Type": "application/json" }) },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(PATIENCE_MS),
      cache: "no-store",
    });
  } catch (error) {
    const late = error instanceof DOMException && error.name === "TimeoutError";
    throw new Refusal(0, late ? "the server took too long to answer" : "the server does not answer");
  }
  if (!response.ok) throw await refusalOf(response);
  return response.json();
}

const subscription = (id) => `v1/subscriptions/${encodeURIComponent(id)}`;

/** The calls of the service that the page makes. */
export const service = {
  subscribe: (wish) => request("POST", "v1/subscriptions", { body: wish }),
  unsubscribe: (id) => request("DELETE", subscription(id)),
  subscription: (id) => request("GET", subscription(id)),
  subscriptions: (after, limit) =>
    request("GET", "v1/subscriptions", { parameters: after === null ? { limit } : { limit, after } }),
  /** With the texts of the objects that it names, or without: they are looked up each time. */
  standing: (id, texts) => request("GET", `${subscription(id)}/standing`, { parameters: texts ? { objects: 1 } : {} }),
  query: (wish) => request("POST", "v1/query", { parameters: { objects: 1 }, body: wish }),
  health: () => request("GET", "health"),
  plan: () => request("GET", "v1/plan"),
};
