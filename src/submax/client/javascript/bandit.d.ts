import type { Decide, Decision, Receipt, Reward } from "./api.js";
import type { CallOptions, TransportOptions } from "./transport.js";

export interface BanditOptions extends TransportOptions {
  /** How often a request is sent if no answer comes or the server is busy; 8 if absent. */
  attempts?: number;
}

/** What a reward may have beside its decision and its value. */
export type RewardOptions = Omit<Reward, "id" | "value"> & CallOptions;

/**
 * One bandit of a server.
 *
 * A request that fails on its way is sent again. Every decision has an id before it is sent and
 * every reward has a key, so a request that arrives twice has the effect of one.
 */
export declare class Bandit {
  constructor(address: string, name: string, options?: BanditOptions);
  /** Choose an action. The same id again gives the same decision. */
  decide(
    context?: Decide["context"],
    options?: Omit<Decide, "context"> & CallOptions,
  ): Promise<Decision>;
  /** Choose several actions, all or none. */
  decideMany(requests: Decide[], options?: CallOptions): Promise<Decision[]>;
  /** Record a reward, or a table of rewards by their names or slots. */
  reward(id: string, value: Reward["value"], options?: RewardOptions): Promise<Receipt>;
  /** Record several rewards; one that conflicts gets the receipt `conflict`. */
  rewardMany(rewards: Reward[], options?: CallOptions): Promise<Receipt[]>;
  /** Confirm a decision that was made with `activate: false`. */
  activate(id: string, options?: CallOptions): Promise<Receipt>;
}
