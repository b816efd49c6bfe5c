// Light, dark, or as the system says; colours for what CSS does not draw.
import { byId } from "./dom.js";
import { device } from "./memory.js";

const ORDER = ["auto", "light", "dark"];
const SAID = { auto: "system", light: "light", dark: "dark" };
const system = matchMedia("(prefers-color-scheme: dark)");

export const motion = matchMedia("(prefers-reduced-motion: reduce)");

class Theme extends EventTarget {
  #probe = document.createElement("span");
  /** @type {Map<string, string>} */
  #colours = new Map();

  constructor() {
    super();
    this.#probe.hidden = true;
    document.body.append(this.#probe);
    const button = byId("theme");
    button.addEventListener("click", () => {
      const chosen = ORDER[(ORDER.indexOf(this.chosen) + 1) % ORDER.length];
      document.documentElement.dataset.theme = chosen;
      device.set("theme", chosen);
      this.#tell(button);
    });
    system.addEventListener("change", () => this.#tell(button));
    this.#label(button);
  }

  get chosen() {
    return document.documentElement.dataset.theme ?? "auto";
  }

  get dark() {
    return this.chosen === "dark" || (this.chosen === "auto" && system.matches);
  }

  /** A custom property's colour as it is now, as `rgb(...)`. */
  colour(name) {
    let colour = this.#colours.get(name);
    if (colour === undefined) {
      this.#probe.style.color = `var(--${name})`;
      colour = getComputedStyle(this.#probe).color;
      this.#colours.set(name, colour);
    }
    return colour;
  }

  #label(button) {
    button.setAttribute("aria-label", `Theme: ${SAID[this.chosen]}. Change`);
    button.title = `Theme: ${SAID[this.chosen]}`;
  }

  #tell(button) {
    this.#label(button);
    this.#colours.clear();
    this.dispatchEvent(new Event("change"));
  }
}

export const theme = new Theme();

/** So many colours tell subscriptions and workers apart; see `--hue-*`. */
export const HUES = 8;
