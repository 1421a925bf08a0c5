// This file is generated from the OpenAPI description by clients/typescript/generate.py.
import { Transport } from "./transport.js";

const part = encodeURIComponent;

/** Every operation of a server, one method for each. */
export class Api {
  #transport;

  constructor(address, options = {}) {
    this.#transport = new Transport(address, options);
  }

  decide(name, body, options = {}) {
    return this.#transport.call("POST", `/bandits/${part(name)}/decide`, body, options);
  }

  decideMany(name, body, options = {}) {
    return this.#transport.call("POST", `/bandits/${part(name)}/decide-many`, body, options);
  }

  reward(name, body, options = {}) {
    return this.#transport.call("POST", `/bandits/${part(name)}/reward`, body, options);
  }

  rewardMany(name, body, options = {}) {
    return this.#transport.call("POST", `/bandits/${part(name)}/reward-many`, body, options);
  }

  activate(name, body, options = {}) {
    return this.#transport.call("POST", `/bandits/${part(name)}/activate`, body, options);
  }

  list(options = {}) {
    return this.#transport.call("GET", `/bandits`, undefined, options);
  }

  create(body, options = {}) {
    return this.#transport.call("POST", `/bandits`, body, options);
  }

  show(name, options = {}) {
    return this.#transport.call("GET", `/bandits/${part(name)}`, undefined, options);
  }

  set(name, body, options = {}) {
    return this.#transport.call("PATCH", `/bandits/${part(name)}`, body, options);
  }

  delete(name, options = {}) {
    return this.#transport.call("DELETE", `/bandits/${part(name)}`, undefined, options);
  }

  pause(name, options = {}) {
    return this.#transport.call("POST", `/bandits/${part(name)}/pause`, undefined, options);
  }

  resume(name, options = {}) {
    return this.#transport.call("POST", `/bandits/${part(name)}/resume`, undefined, options);
  }

  archive(name, options = {}) {
    return this.#transport.call("POST", `/bandits/${part(name)}/archive`, undefined, options);
  }

  change(name, body, options = {}) {
    return this.#transport.call("POST", `/bandits/${part(name)}/choices`, body, options);
  }

  lift(name, options = {}) {
    return this.#transport.call("GET", `/bandits/${part(name)}/lift`, undefined, options);
  }

  erase(name, body, options = {}) {
    return this.#transport.call("POST", `/bandits/${part(name)}/erase`, body, options);
  }

  export(name, options = {}) {
    return this.#transport.bytes("GET", `/bandits/${part(name)}/export`, undefined, options);
  }

  versions(name, options = {}) {
    return this.#transport.call("GET", `/bandits/${part(name)}/versions`, undefined, options);
  }

  publish(name, body, options = {}) {
    return this.#transport.call("POST", `/bandits/${part(name)}/publish`, body, options);
  }

  rollBack(name, options = {}) {
    return this.#transport.call("POST", `/bandits/${part(name)}/roll-back`, undefined, options);
  }

  keys(options = {}) {
    return this.#transport.call("GET", `/keys`, undefined, options);
  }

  addKey(body, options = {}) {
    return this.#transport.call("POST", `/keys`, body, options);
  }

  revokeKey(id, options = {}) {
    return this.#transport.call("DELETE", `/keys/${part(id)}`, undefined, options);
  }

  audit(options = {}) {
    return this.#transport.call("GET", `/audit`, undefined, options);
  }

  health(options = {}) {
    return this.#transport.call("GET", `/healthz`, undefined, options);
  }

  ready(options = {}) {
    return this.#transport.call("GET", `/readyz`, undefined, options);
  }
}
