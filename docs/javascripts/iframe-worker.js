/* Browsers refuse workers on pages that are opened from a file. There, the search runs in a hidden frame:
   it has a global object of its own, as a worker has. */
if (location.protocol === "file:") {
  window.Worker = class FrameWorker extends EventTarget {
    onmessage = null;
    onerror = null;
    onmessageerror = null;
    #frame = document.createElement("iframe");
    #waiting = [];

    constructor(address) {
      super();
      this.#frame.hidden = true;
      document.body.append(this.#frame);
      const inside = this.#frame.contentWindow;
      inside.postMessage = (data) => this.#receive(data);
      const script = inside.document.createElement("script");
      script.src = address;
      script.onload = () => this.#deliver();
      script.onerror = (event) => this.onerror?.(event);
      inside.document.body.append(script);
    }

    postMessage(data) {
      this.#waiting?.push(data);
      if (!this.#waiting) this.#send(data);
    }

    terminate() {
      this.#frame.remove();
    }

    #deliver() {
      const messages = this.#waiting;
      this.#waiting = null;
      for (const data of messages) this.#send(data);
    }

    #send(data) {
      const inside = this.#frame.contentWindow;
      setTimeout(() => inside?.dispatchEvent(new inside.MessageEvent("message", { data })));
    }

    #receive(data) {
      setTimeout(() => {
        const event = new MessageEvent("message", { data });
        this.onmessage?.(event);
        this.dispatchEvent(event);
      });
    }
  };
}
