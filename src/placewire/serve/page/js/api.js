// Requests to the server: API key, calls and errors.
import { device, tab } from "./memory.js";

const BASE = new URL(".", document.baseURI);
const TIMEOUT_MS = 20_000;

/** An error response; status 0 if the server did not answer. */
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

  /** Report that the server requires a key. */
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

/** The error of a response that is not 2xx. */
export async function refusalOf(response) {
  let said = "";
  try {
    const body = await response.json();
    said = String(body.error ?? body.status ?? "");
  } catch {
    // Not JSON, such as a proxy's page: use its status.
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
      signal: AbortSignal.timeout(TIMEOUT_MS),
      cache: "no-store",
    });
  } catch (error) {
    const late = error instanceof DOMException && error.name === "TimeoutError";
    throw new Refusal(0, late ? "the server did not answer within 20 s" : "the server does not answer");
  }
  if (!response.ok) throw await refusalOf(response);
  return response.json();
}

const subscription = (id) => `v1/subscriptions/${encodeURIComponent(id)}`;

/** The HTTP calls that the page makes. */
export const service = {
  subscribe: (wish) => request("POST", "v1/subscriptions", { body: wish }),
  unsubscribe: (id) => request("DELETE", subscription(id)),
  subscription: (id) => request("GET", subscription(id)),
  subscriptions: (after, limit) =>
    request("GET", "v1/subscriptions", { parameters: after === null ? { limit } : { limit, after } }),
  /** `texts` adds the texts of named objects, which the server looks up for each request. */
  standing: (id, texts) => request("GET", `${subscription(id)}/standing`, { parameters: texts ? { objects: 1 } : {} }),
  query: (wish) => request("POST", "v1/query", { parameters: { objects: 1 }, body: wish }),
  health: () => request("GET", "health"),
  plan: () => request("GET", "v1/plan"),
};
