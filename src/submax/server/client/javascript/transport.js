/** An error that a server reported, or that no answer came. */
export class SubmaxError extends Error {
  constructor(message, status = 0, code = "no-answer") {
    super(message);
    this.name = "SubmaxError";
    this.status = status;
    this.code = code;
  }
}

// The server tries a policy for up to 60 seconds before it decides, and may have to wait for that.
const TRIAL_MILLISECONDS = 90_000;

/** Sends requests to a server by `fetch`, one at a time, without repeating them. */
export class Transport {
  #address;
  #headers;
  #fetch;
  #timeout;

  constructor(address, { key, timeout = 10_000, fetch = globalThis.fetch } = {}) {
    if (!/^https?:\/\/[^/]/.test(address)) {
      throw new TypeError(`the address ${address} is none: write it like http://127.0.0.1:8000`);
    }
    this.#address = address.replace(/\/+$/, "");
    this.#headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
    this.#timeout = timeout;
    this.#fetch = fetch;
  }

  /** The address of a path of the server. */
  url(path) {
    return this.#address + path;
  }

  /** Send a request, and return its answer, which is JSON. */
  async call(method, path, body, options = {}, query = undefined) {
    return (await this.#answer(method, path, body, options, query)).json();
  }

  /** Send a request, and return its answer, which is a file. */
  async bytes(method, path, body, options = {}, query = undefined) {
    return (await this.#answer(method, path, body, options, query)).arrayBuffer();
  }

  async #answer(method, path, body, { signal, keepalive = false, slow = false }, query) {
    // The event of a signal that was aborted before, as between two attempts, does not come again.
    signal?.throwIfAborted();
    const words = new URLSearchParams(
      Object.entries(query ?? {}).filter(([, value]) => value !== undefined),
    ).toString();
    const headers = { ...this.#headers };
    if (body !== undefined) headers["content-type"] = "application/json";
    const timer = new AbortController();
    const stop = () => timer.abort();
    const patience = slow ? Math.max(this.#timeout, TRIAL_MILLISECONDS) : this.#timeout;
    const waiting = setTimeout(stop, patience);
    signal?.addEventListener("abort", stop);
    let response;
    try {
      response = await this.#fetch.call(globalThis, this.url(path) + (words && `?${words}`), {
        method,
        headers,
        keepalive,
        body: body === undefined ? undefined : JSON.stringify(body),
        signal: timer.signal,
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new SubmaxError(`no answer from ${this.#address}: ${error.message}`);
    } finally {
      clearTimeout(waiting);
      signal?.removeEventListener("abort", stop);
    }
    if (!response.ok) throw await failure(response);
    return response;
  }
}

async function failure(response) {
  const text = await response.text();
  try {
    const found = JSON.parse(text);
    return new SubmaxError(String(found.error), response.status, String(found.code));
  } catch {
    return new SubmaxError(text.slice(0, 200), response.status, "no-submax-server");
  }
}
