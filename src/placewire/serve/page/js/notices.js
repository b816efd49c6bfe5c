// Notices, and announcements for screen readers at a limited rate.
import { byId, el } from "./dom.js";
import { sayPlural } from "./words.js";

const SHOWN_MS = 9000;
const MOST = 3;
const SAY_EVERY_MS = 6000;

/**
 * A notice that goes by itself, not while it is pointed at or focused.
 * @param {string} title @param {string} [detail] @param {{label:string, act:() => void}} [action]
 */
export function notify(title, detail = "", action = undefined, tone = "plain") {
  const box = byId("notices");
  while (box.children.length >= MOST) box.firstElementChild?.remove();
  const close = () => notice.remove();
  const notice = el("div", { class: "notice", data: { tone } },
    el("div", { class: "notice-text" }, el("strong", {}, title), detail ? el("span", {}, detail) : null),
    action ? el("button", { type: "button", class: "quiet", on: { click: () => { close(); action.act(); } } }, action.label) : null,
    el("button", { type: "button", class: "icon", "aria-label": "Dismiss", on: { click: close } }, "×"));
  box.append(notice);
  let timer = setTimeout(close, SHOWN_MS);
  const hold = () => clearTimeout(timer);
  const release = () => (timer = setTimeout(close, SHOWN_MS / 2));
  for (const type of ["pointerenter", "focusin"]) notice.addEventListener(type, hold);
  for (const type of ["pointerleave", "focusout"]) notice.addEventListener(type, release);
}

let waiting = [];
let timer = null;
let last = 0;

function flush() {
  timer = null;
  last = Date.now();
  const [newest, more] = [waiting.at(-1), waiting.length - 1];
  waiting = [];
  if (newest) byId("said").textContent = more > 0 ? `${newest}. ${sayPlural(more, "more result")}.` : newest;
}

/** Announce a result to screen readers; results in quick succession become one sentence. */
export function say(sentence) {
  waiting.push(sentence);
  if (waiting.length > 1000) waiting = waiting.slice(-1000);
  if (timer === null) timer = setTimeout(flush, Math.max(0, last + SAY_EVERY_MS - Date.now()));
}
