import { Api } from "./api.js";
import { newIdentifier } from "./identifier.js";
import { SubmaxError } from "./transport.js";

/** Statuses after which the same request is sent again: no answer, too many requests, unavailable. */
const RETRIED = [0, 429, 503];
/** Milliseconds before the second attempt, and at most between two: the pause doubles each time. */
const FIRST_PAUSE = 50;
const LONGEST_PAUSE = 2000;
/** Rewards in one request: of 1000 that the server allows, so many that no request takes long. */
const LARGEST_BATCH = 200;

/** One bandit of a server. */
export class Bandit {
  #api;
  #name;
  #attempts;
  #gather;
  #queued = [];
  #timer;
  #sending = new Set();

  constructor(address, name, { attempts = 8, gather = 5, ...options } = {}) {
    this.#api = new Api(address, options);
    this.#name = name;
    this.#attempts = attempts;
    this.#gather = gather;
    // A page that is left or hidden may never run again: what was gathered is sent at once.
    globalThis.document?.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "hidden") this.#sendQueued({ keepalive: true });
    });
  }

  decide(context = undefined, { signal, keepalive, ...request } = {}) {
    const body = { ...request, id: request.id ?? newIdentifier(), context };
    return this.#retried(() => this.#api.decide(this.#name, body, { signal, keepalive }));
  }

  async decideMany(requests, options = {}) {
    const body = { requests: requests.map((one) => ({ ...one, id: one.id ?? newIdentifier() })) };
    return (await this.#retried(() => this.#api.decideMany(this.#name, body, options))).decisions;
  }

  reward(id, value, request = {}) {
    // JSON has no word for NaN, and null would mean "missing".
    const numbers = typeof value === "object" && value !== null ? Object.values(value) : [value];
    if (!numbers.every(Number.isFinite)) {
      const given = JSON.stringify(value) ?? String(value);
      return Promise.reject(new TypeError(`rewards must be finite numbers, not ${given}`));
    }
    return new Promise((resolve, reject) => {
      this.#queued.push({ body: { ...request, id, value }, resolve, reject });
      this.#timer ??= setTimeout(() => this.#sendQueued(), this.#gather);
    });
  }

  async rewardMany(rewards, options = {}) {
    const send = () => this.#api.rewardMany(this.#name, { rewards }, options);
    return (await this.#retried(send)).receipts;
  }

  activate(id, options = {}) {
    return this.#retried(() => this.#api.activate(this.#name, { id }, options));
  }

  async flush() {
    this.#sendQueued();
    while (this.#sending.size > 0) await Promise.all(this.#sending);
  }

  #sendQueued(options = {}) {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    while (this.#queued.length > 0) {
      const batch = this.#queued.splice(0, LARGEST_BATCH);
      const sending = this.#sendBatch(batch, options).finally(() => this.#sending.delete(sending));
      this.#sending.add(sending);
    }
  }

  /** Send rewards together; if one is wrong, it is found by halving, and the others are sent again. */
  async #sendBatch(batch, options) {
    if (batch.length === 1) {
      const [{ body, resolve, reject }] = batch;
      return this.#retried(() => this.#api.reward(this.#name, body, options)).then(resolve, reject);
    }
    let receipts;
    try {
      receipts = await this.rewardMany(batch.map((one) => one.body), options);
    } catch (error) {
      const splits = error.status >= 400 && error.status < 500 && ![401, 403].includes(error.status);
      if (!splits) return batch.forEach((one) => one.reject(error));
      const middle = Math.floor(batch.length / 2);
      await this.#sendBatch(batch.slice(0, middle), options);
      return this.#sendBatch(batch.slice(middle), options);
    }
    for (const [place, one] of batch.entries()) {
      // A single reward that conflicts has an error with a sentence; it is asked for by itself.
      if (receipts[place]?.status === "conflict") await this.#sendBatch([one], options);
      else one.resolve(receipts[place]);
    }
  }

  async #retried(send) {
    let pause = FIRST_PAUSE;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await send();
      } catch (error) {
        const again = error instanceof SubmaxError && RETRIED.includes(error.status);
        if (!again || attempt >= this.#attempts) throw error;
      }
      // A random factor, so clients that failed together do not retry together.
      await new Promise((resume) => setTimeout(resume, pause * (0.5 + Math.random())));
      pause = Math.min(2 * pause, LONGEST_PAUSE);
    }
  }
}
