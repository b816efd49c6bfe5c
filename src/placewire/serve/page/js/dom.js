// Making elements. Text goes in as text only: what the stream brings is never read as markup.

/**
 * @param {string} name
 * @param {Record<string, any>} [attributes] `class`, `on` (listeners), `data`, `vars` (custom properties), or plain attributes
 * @param {...(Node|string|null|undefined)} children
 * @returns {HTMLElement}
 */
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "on") {
      for (const [type, listener] of Object.entries(value)) element.addEventListener(type, listener);
    } else if (key === "data") {
      for (const [field, text] of Object.entries(value)) element.dataset[field] = String(text);
    } else if (key === "vars") {
      for (const [field, text] of Object.entries(value)) element.style.setProperty(`--${field}`, String(text));
    } else {
      element.setAttribute(key, value === true ? "" : String(value));
    }
  }
  for (const child of children) if (child !== null && child !== undefined) element.append(child);
  return element;
}

/** The element of that id, which index.html must have. */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no element '${id}'`);
  return element;
}

/** Sets text only when it differs, so that screen readers are not told the same again. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
