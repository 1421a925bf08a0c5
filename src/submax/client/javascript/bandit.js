import { Api } from "./api.js";
import { newIdentifier } from "./identifier.js";
import { SubmaxError } from "./transport.js";

/** Statuses after which the same request is sent again: no answer, too many requests, unavailable. */
const RETRIED = [0, 429, 503];
/** Milliseconds before the second attempt, and at most between two: the pause doubles each time. */
const FIRST_PAUSE = 50;
const LONGEST_PAUSE = 2000;

/** One bandit of a server. */
export class Bandit {
  #api;
  #name;
  #attempts;

  constructor(address, name, { attempts = 8, ...options } = {}) {
    this.#api = new Api(address, options);
    this.#name = name;
    this.#attempts = attempts;
  }

  decide(context = undefined, { signal, keepalive, ...request } = {}) {
    const body = { ...request, id: request.id ?? newIdentifier(), context };
    return this.#retried(() => this.#api.decide(this.#name, body, { signal, keepalive }));
  }

  async decideMany(requests, options = {}) {
    const body = { requests: requests.map((one) => ({ ...one, id: one.id ?? newIdentifier() })) };
    return (await this.#retried(() => this.#api.decideMany(this.#name, body, options))).decisions;
  }

  async reward(id, value, { signal, keepalive, ...request } = {}) {
    // JSON has no word for NaN, and null would mean "missing".
    const numbers = typeof value === "object" && value !== null ? Object.values(value) : [value];
    if (!numbers.every(Number.isFinite)) {
      const given = JSON.stringify(value) ?? String(value);
      throw new TypeError(`rewards must be finite numbers, not ${given}`);
    }
    const body = { ...request, id, value };
    return this.#retried(() => this.#api.reward(this.#name, body, { signal, keepalive }));
  }

  async rewardMany(rewards, options = {}) {
    const send = () => this.#api.rewardMany(this.#name, { rewards }, options);
    return (await this.#retried(send)).receipts;
  }

  activate(id, options = {}) {
    return this.#retried(() => this.#api.activate(this.#name, { id }, options));
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
