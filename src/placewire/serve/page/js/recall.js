// Reading kept results again, from one number to another: a stream that is left when it has caught up.
import { address, key } from "./api.js";
import { MessageParser } from "./sse.js";

const PATIENCE_MS = 5000;

/**
 * Hands each kept result with a number after `after` and up to `last` to `take`; ends early when none comes for long.
 * @param {string} path @param {number} after @param {number} last @param {(data: any) => void} take
 */
export async function recall(path, after, last, take) {
  if (last <= after) return;
  const attempt = new AbortController();
  const timer = setTimeout(() => attempt.abort(), PATIENCE_MS);
  try {
    const response = await fetch(address(path, { objects: 1, after }), {
      headers: { Accept: "text/event-stream", ...key.headers }, signal: attempt.signal, cache: "no-store" });
    if (!response.ok || !response.body) return;
    const parser = new MessageParser();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      for (const message of parser.push(value)) {
        const data = JSON.parse(message.data);
        take(data);
        if (data.number >= last) return;
      }
    }
  } catch (error) {
    if (!attempt.signal.aborted && !(error instanceof TypeError)) throw error; // a broken connection is told elsewhere
  } finally {
    clearTimeout(timer);
    attempt.abort();
  }
}
