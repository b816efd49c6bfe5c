// Run the search worker in a hidden frame when pages are opened as files: browsers allow no
// workers there. The theme's `offline` plugin loads such a script from another host otherwise.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inner = this.frame.contentWindow;
      inner.importScripts = (...urls) =>
        urls.reduce(
          (before, src) =>
            before.then(
              () =>
                new Promise((done, failed) => {
                  const script = inner.document.createElement("script");
                  Object.assign(script, { src, onload: done, onerror: failed });
                  inner.document.body.append(script);
                }),
            ),
          Promise.resolve(),
        );
      inner.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.onmessage?.(event);
        this.dispatchEvent(event);
      };
      this.ready = inner.importScripts(url);
      this.inner = inner;
    }
    postMessage(data) {
      this.ready.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
