/** An error that a server reported, or that no answer came. */
export class SubmaxError extends Error {
  constructor(message, status = 0, code = "no-answer") {
    super(message);
    this.name = "SubmaxError";
    this.status = status;
    this.code = code;
  }
}

const JSON_BODY = { "content-type": "application/json" };

/** Sends requests to a server by `fetch`, one at a time, without repeating them. */
export class Transport {
  #address;
  #headers;
  #fetch;
  #timeout;

  constructor(address, { key, timeout = 10_000, fetch = globalThis.fetch } = {}) {
    if (!/^https?:\/\/[^/]/.test(address)) {
      throw new TypeError(`${address} is not the URL of a server: write it like http://127.0.0.1:8000`);
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
  async call(method, path, body, options = {}) {
    return this.#answer(method, path, body, options, parsed);
  }

  /** Send a request, and return its answer, which is a file. */
  async bytes(method, path, body, options = {}) {
    return this.#answer(method, path, body, options, (response, clock) => {
      // A large file may take longer than an answer may.
      clearTimeout(clock);
      return response.arrayBuffer();
    });
  }

  async #answer(method, path, body, { signal, keepalive = false }, read) {
    // The event of a signal that was aborted before, as between two attempts, does not come again.
    signal?.throwIfAborted();
    const timer = new AbortController();
    const stop = () => timer.abort();
    const clock = setTimeout(stop, this.#timeout);
    signal?.addEventListener("abort", stop);
    try {
      const response = await this.#fetch.call(globalThis, this.url(path), {
        method,
        headers: body === undefined ? this.#headers : { ...this.#headers, ...JSON_BODY },
        keepalive,
        body: body === undefined ? undefined : JSON.stringify(body),
        signal: timer.signal,
      });
      if (!response.ok) throw await failure(response);
      return await read(response, clock);
    } catch (error) {
      if (signal?.aborted || error instanceof SubmaxError) throw error;
      throw new SubmaxError(`no answer from ${this.#address}: ${error.message}`);
    } finally {
      clearTimeout(clock);
      signal?.removeEventListener("abort", stop);
    }
  }
}

async function parsed(response) {
  const text = await response.text();
  try {
    return JSON.parse(text);
  } catch {
    throw new SubmaxError(text.slice(0, 200), response.status, "no-submax-server");
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
