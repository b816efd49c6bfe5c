// How numbers, distances and times are said.

const count = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });

export function sayCount(n) {
  return count.format(n);
}

/** A rate or a measure in few characters: 0.4, 12, 3,400, 1.2 M. */
export function sayShort(n) {
  if (n === null || n === undefined || !Number.isFinite(n)) return "–";
  const size = Math.abs(n);
  if (size >= 1e6) return `${(n / 1e6).toFixed(size >= 1e7 ? 0 : 1)} M`;
  if (size >= 1e4) return `${(n / 1e3).toFixed(0)} k`;
  if (size > 0 && size < 10 && !Number.isInteger(n)) return n.toFixed(1);
  return count.format(n);
}

export function sayMilliseconds(ms) {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return "–";
  return ms >= 10_000 ? `${(ms / 1000).toFixed(0)} s` : ms >= 1000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms)} ms`;
}

export function sayDistance(m) {
  if (m < 1) return "less than 1 m";
  if (m < 1000) return `${Math.round(m)}\u00a0m`;
  if (m < 10_000) return `${(m / 1000).toFixed(1)}\u00a0km`;
  return `${count.format(m / 1000)}\u00a0km`;
}

export function sayScore(score) {
  return score.toFixed(3);
}

export function sayTime(date) {
  return clock.format(date);
}

/** A time, with its day unless that is today. */
export function sayMoment(date) {
  return date.toDateString() === new Date().toDateString() ? sayTime(date) : `${day.format(date)}, ${sayTime(date)}`;
}

export function sayOrdinal(n) {
  const tens = n % 100;
  if (tens >= 11 && tens <= 13) return `${n}th`;
  return `${n}${["th", "st", "nd", "rd"][n % 10] ?? "th"}`;
}

export function sayPlural(n, one, many = `${one}s`) {
  return `${sayCount(n)} ${n === 1 ? one : many}`;
}

/** A text that fits: cut by whole characters, never inside one. */
export function shorten(text, limit) {
  const characters = [...text.slice(0, limit * 4)];
  if (characters.length <= limit) return text.length > limit * 4 ? `${characters.join("")}…` : text;
  return `${characters.slice(0, limit - 1).join("").trimEnd()}…`;
}

const UNITS = [["D", 86_400, "day"], ["H", 3600, "hour"], ["M", 60, "minute"], ["S", 1, "second"]];

/** ISO 8601 of so many seconds, minutes, hours or days. */
export function isoDuration(amount, unit) {
  return unit === "D" ? `P${amount}D` : `PT${amount}${unit}`;
}

/** "10 minutes" of PT10M; what is not so plain stays as it is. */
export function sayDuration(iso) {
  const plain = /^P(?:(\d+)D|T(\d+)([HMS]))$/.exec(iso);
  if (!plain) return iso;
  const [unit, amount] = plain[1] ? ["D", plain[1]] : [plain[3], plain[2]];
  const [, , word] = UNITS.find(([letter]) => letter === unit);
  return Number(amount) === 1 ? word : `${amount} ${word}s`;
}
