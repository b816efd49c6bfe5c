// Server-sent events read from a response's body, so that a request can carry an Authorization header.

/** @typedef {{event:string,data:string,id:string|null}} Message */

/** Cuts a stream of text into messages by the rules of the HTML standard. */
export class MessageParser {
  #rest = "";
  #event = "";
  #data = [];
  #afterReturn = false;
  /** The last id that was sent, with a message or alone. @type {string|null} */
  lastId = null;

  /** @param {string} chunk @returns {Message[]} */
  push(chunk) {
    if (this.#afterReturn && chunk.startsWith("\n")) chunk = chunk.slice(1);
    this.#afterReturn = chunk.endsWith("\r");
    const lines = (this.#rest + chunk).split(/\r\n|\n|\r/);
    this.#rest = lines.pop() ?? "";
    const messages = [];
    for (const line of lines) {
      const message = this.#take(line);
      if (message) messages.push(message);
    }
    return messages;
  }

  /** @returns {Message|null} */
  #take(line) {
    if (line === "") {
      const data = this.#data;
      const event = this.#event || "message";
      this.#data = [];
      this.#event = "";
      return data.length ? { event, data: data.join("\n"), id: this.lastId } : null;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return null;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#event = value;
    else if (field === "id" && !value.includes("\0")) this.lastId = value;
    return null;
  }
}
