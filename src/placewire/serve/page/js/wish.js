// Convert the form to JSON, and a subscription to one line of text.
import { sayPoint, sayRegion } from "./region.js";
import { isoDuration, sayDistance, sayDuration, sayMoment } from "./words.js";

/** An invalid field. */
export class WrongField extends Error {
  constructor(field, message) {
    super(message);
    this.field = field;
  }
}

function numberOf(fields, name, what, { min = -Infinity, max = Infinity, above = -Infinity, whole = false } = {}) {
  const text = String(fields[name] ?? "").trim();
  const value = Number(text);
  if (text === "" || !Number.isFinite(value)) throw new WrongField(name, `${what} must be a number, got ${text === "" ? "an empty field" : `“${text}”`}`);
  if (whole && !Number.isInteger(value)) throw new WrongField(name, `${what} must be a whole number, got ${text}`);
  if (value < min || value > max) throw new WrongField(name, `${what} must be between ${min} and ${max}, got ${text}`);
  if (value <= above) throw new WrongField(name, `${what} must be greater than ${above}, got ${text}`);
  return value;
}

function optional(fields, name, read) {
  return String(fields[name] ?? "").trim() === "" ? undefined : read();
}

function durationOf(fields, name, what) {
  return isoDuration(numberOf(fields, name, what, { min: 1, max: 1_000_000, whole: true }), fields[`${name}-unit`]);
}

/** The corners of the polygon's field: one a line, longitude and latitude. */
function ringOf(text) {
  const rows = text.split(/\n|;/).map((row) => row.trim()).filter(Boolean);
  const ring = rows.map((row, index) => {
    const numbers = row.split(/[\s,]+/).map(Number);
    if (numbers.length !== 2 || !numbers.every(Number.isFinite) || Math.abs(numbers[0]) > 180 || Math.abs(numbers[1]) > 90) {
      throw new WrongField("polygon", `corner ${index + 1} must be a longitude and a latitude, got “${row}”`);
    }
    return numbers;
  });
  const [first, last] = [ring[0], ring.at(-1)];
  const closed = ring.length > 1 && first[0] === last[0] && first[1] === last[1];
  if (ring.length - (closed ? 1 : 0) < 3) throw new WrongField("polygon", `a polygon must have at least 3 corners, got ${ring.length - (closed ? 1 : 0)}`);
  return closed ? ring : [...ring, first];
}

/** The region that a form's fields say. @returns {import("./region.js").Region|undefined} */
export function regionOf(fields) {
  const lon = (name, what) => numberOf(fields, name, what, { min: -180, max: 180 });
  const lat = (name, what) => numberOf(fields, name, what, { min: -90, max: 90 });
  if (fields.shape === "box") {
    const box = [lon("west", "west"), lat("south", "south"), lon("east", "east"), lat("north", "north")];
    if (box[1] > box[3]) throw new WrongField("south", `south must not be above north, got ${box[1]} and ${box[3]}`);
    return { box };
  }
  if (fields.shape === "circle") {
    const radius_m = numberOf(fields, "radius", "radius", { above: 0 });
    return { circle: { lon: lon("lon", "longitude"), lat: lat("lat", "latitude"), radius_m } };
  }
  if (fields.shape === "polygon") return { polygon: [ringOf(String(fields.polygon ?? ""))] };
  return undefined;
}

function keywordsOf(fields) {
  const keywords = String(fields.words ?? "").split(/[\s,]+/).filter(Boolean);
  if (!keywords.length) throw new WrongField("words", "keywords must have at least one word");
  return keywords;
}

function pointOf(fields) {
  return {
    lon: numberOf(fields, "lon", "longitude", { min: -180, max: 180 }),
    lat: numberOf(fields, "lat", "latitude", { min: -90, max: 90 }),
  };
}

const KINDS = {
  boolean(fields) {
    const region = regionOf(fields);
    const where = String(fields.words ?? "").trim() || undefined;
    if (!region && !where) throw new WrongField("words", "enter words, choose a region, or both");
    return { region, where };
  },
  nearest: (fields) => ({
    ...pointOf(fields), keywords: keywordsOf(fields), k: numberOf(fields, "k", "number of results", { min: 1, max: 1000, whole: true }),
    mode: fields.mode === "all" ? "all" : undefined,
    within_m: optional(fields, "within", () => numberOf(fields, "within", "maximum distance", { above: 0 })),
  }),
  relevant: (fields) => ({
    ...pointOf(fields), keywords: keywordsOf(fields), k: numberOf(fields, "k", "number of results", { min: 1, max: 1000, whole: true }),
    alpha: numberOf(fields, "alpha", "weight", { min: 0, max: 1 }),
    reach_m: optional(fields, "reach", () => numberOf(fields, "reach", "reach", { above: 0 })),
  }),
  trending: (fields) => ({ region: regionOf(fields), k: numberOf(fields, "k", "number of results", { min: 1, max: 1000, whole: true }) }),
};

function plain(wish) {
  return Object.fromEntries(Object.entries(wish).filter(([, value]) => value !== undefined));
}

/** The expiry: entered in local time, sent as UTC. */
function expiryOf(fields) {
  return optional(fields, "expires", () => {
    const at = new Date(String(fields.expires));
    if (Number.isNaN(at.getTime())) throw new WrongField("expires", `expiry must be a date and a time, got “${fields.expires}”`);
    if (at.getTime() <= Date.now()) throw new WrongField("expires", "expiry must be in the future");
    return at.toISOString();
  });
}

/** A subscription's JSON from the fields of the form. */
export function subscriptionOf(fields) {
  const paces = fields.kind === "trending"
    ? { window: durationOf(fields, "window", "window"), every: durationOf(fields, "every", "interval") }
    : {};
  return plain({ kind: fields.kind, ...KINDS[fields.kind](fields), ...paces, expires: expiryOf(fields) });
}

/** A snapshot query's JSON from the same fields. */
export function queryOf(fields) {
  return plain({ kind: fields.kind, ...KINDS[fields.kind](fields), last: durationOf(fields, "last", "time span") });
}

/** A name for a subscription from its words. */
export function nameFor(fields) {
  const words = (String(fields.words ?? "").match(/[\p{L}\p{N}]+/gu) ?? []).filter((word) => !/^(AND|OR|NOT)$/.test(word));
  if (fields.kind === "trending" || !words.length) return fields.kind === "boolean" ? "everything" : fields.kind;
  return words.slice(0, 3).join("-").toLowerCase().slice(0, 40);
}

/** An expression as the query string says it. */
export function sayWhere(where) {
  if (where === undefined) return "any text";
  if (typeof where === "string") return where;
  const join = (parts, word) => parts.map((part) => (typeof part === "string" ? part : `(${sayWhere(part)})`)).join(` ${word} `);
  if (where.all) return join(where.all, "AND");
  if (where.any) return join(where.any, "OR");
  return `NOT (${join(where.none ?? [], "OR")})`;
}

/** One line that describes a subscription and its expiry. */
export function sayWish(wish) {
  return wish.expires === undefined ? sayWait(wish) : `${sayWait(wish)}; expires ${sayMoment(new Date(wish.expires))}`;
}

function sayWait(wish) {
  const near = () => `near ${sayPoint(wish.lon, wish.lat)}`;
  const words = (joint) => wish.keywords.join(joint);
  switch (wish.kind) {
    case "boolean":
      return `${sayWhere(wish.where)}, ${sayRegion(wish.region)}`;
    case "nearest":
      return `the ${wish.k} nearest with ${words(wish.mode === "all" ? " and " : " or ")}, ${near()}${wish.within_m ? `, at most ${sayDistance(wish.within_m)} away` : ""}`;
    case "relevant":
      return `the ${wish.k} most relevant for ${words(", ")}, ${near()}`;
    default:
      return `the ${wish.k} most frequent terms of the last ${sayDuration(wish.window)}, every ${sayDuration(wish.every)}, ${sayRegion(wish.region)}`;
  }
}

export const KIND_NAMES = { boolean: "Boolean", nearest: "Nearest", relevant: "Relevant", trending: "Trending" };
