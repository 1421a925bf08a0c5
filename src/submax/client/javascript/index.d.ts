export * from "./api.js";
export { Bandit } from "./bandit.js";
export type { BanditOptions, RewardOptions } from "./bandit.js";
export { newIdentifier } from "./identifier.js";
export { SubmaxError } from "./transport.js";
export type { CallOptions, TransportOptions } from "./transport.js";
