// This file is generated from the OpenAPI description by clients/typescript/generate.py.
import type { CallOptions, TransportOptions } from "./transport.js";

/** Confirms a decision that was made with ``activate`` = false: its action was carried out. */
export interface Activate {
  id: string;
}

/**
 * A choice with its numbers.
 *
 * ``share`` is its share of all decisions, ``rows`` is the number of decisions that were learned
 * from, and ``reward_rate`` is their mean reward, with a 95 % interval for one look from ``low``
 * to ``high``. For plain arms, rewards are weighted by 1 / propensity, so an arm is not
 * judged by the contexts or the times in which it was chosen most often. ``probability`` is that
 * of the next decision, a mean over recent contexts; None if it cannot be computed.
 */
export interface ArmStatus {
  slot: string;
  choice: string;
  status: string;
  decisions: number;
  share: number | null;
  rows: number;
  reward_rate: number | null;
  low: number | null;
  high: number | null;
  probability: number | null;
}

/** The last changes, newest first. */
export interface Audit {
  changes: AuditLine[];
}

/**
 * A change: ``action`` was done on ``subject``, a bandit or a key.
 *
 * ``key`` is the id of the key that did it, if any; ``name`` is that of the key, or says how the
 * change was made. ``detail`` is the beginning of the request.
 */
export interface AuditLine {
  at: number;
  action: string;
  subject: string;
  key: string;
  name: string;
  detail: string;
}

/**
 * A bandit with its settings and counts; plain arms are a slot without a name.
 *
 * ``context_ignored``: there is a context, but the policy does not use it. ``failures``: how often
 * something failed since the server started, and the bandit continued, by kind of failure.
 * ``summary`` describes the bandit for people.
 * ``arms`` are the choices with their decisions, reward rates and probabilities, ``notices`` are
 * sentences about what needs attention, and ``conditions`` deserve an alarm.
 */
export interface BanditDetails {
  name: string;
  actions: Record<string, (number | ChoiceDetails)[]>;
  context: Record<string, unknown>;
  /**
   * The name of a preset such as 'rcp-adaptive', also with parameters, 'linear-thompson,width=0.5', or a table with a 'kind'.
   */
  policy: string | Record<string, unknown>;
  /**
   * The scale of the rewards: its name, or a table with a 'kind'; or a table of names and weights for several rewards; or 'slots' for one reward per slot.
   */
  rewards: Record<string, unknown>;
  /**
   * How several rewards of one decision become one. With reward_wait=0, only 'first' is possible; it is then the default.
   */
  combine: "first" | "last" | "max" | "sum";
  /**
   * Seconds after which a decision matures: the bandit learns from it with the rewards observed so far. With 0, it matures at its first reward.
   */
  reward_wait: number;
  /**
   * With reward_wait=0: seconds after which a decision without a reward is learned from with the default_reward. None: never.
   */
  no_reward_after: number | null;
  /** The reward of a decision that has none when it matures. None: such a decision is not learned from. */
  default_reward: number | null;
  /** Seconds that a reward with an unknown id waits for its decision. */
  quarantine: number;
  guard_rails: GuardRails;
  /**
   * How long a unit keeps its action: as long as a 'version' is live, for a number of seconds, or 'none': every decision is drawn independently.
   */
  sticky: "none" | "version" | number;
  /** Number of newly matured decisions after which a version is fitted. */
  refit_rows: number;
  /** Seconds after which a version is fitted even if fewer decisions have matured. */
  refit_seconds: number;
  /**
   * 'active'; 'paused': decisions follow the control, the baseline or chance, and are not learned from; 'archived': decisions and rewards are refused, and the log can be read.
   */
  status: "active" | "archived" | "paused";
  /** Seed of the fits: the same log and seed give the same version. */
  seed: number;
  /** Number of versions whose models are kept in the store. */
  keep_versions: number;
  context_ignored: boolean;
  version: number;
  held: boolean;
  counts: Record<string, number>;
  summary: string;
  failures: Record<string, number>;
  arms: ArmStatus[];
  notices: string[];
  conditions: Condition[];
}

/** The names of all bandits. */
export interface Bandits {
  bandits: string[];
}

/** A change to an arm, or to a choice of a slot. */
export interface ChangeChoice {
  verb: "add" | "pause" | "resume" | "retire";
  choice: string;
  /** The slot of the choice; empty for plain arms. */
  slot?: string;
  /** The features of a new choice, if the other choices have any. */
  features?: Record<string, number | string>;
  /** Decisions over which a new choice is ramped up; 0 for no ramp. */
  ramp?: number | null;
}

/** Guard rails to change; others stay as they are. */
export interface ChangedGuardRails {
  minimum?: number | null;
  control?: string | Record<string, string | number> | null;
  control_share?: number | null;
  burn_in?: number | null;
  holdout?: number | null;
  baseline?: string | Record<string, string | number> | null;
  aa_test?: boolean | null;
}

/** A choice with its status: active, paused or retired; and its features, if it has any. */
export interface ChoiceDetails {
  choice: string;
  status: string;
  features?: Record<string, number | string>;
}

/**
 * Something that an operator should look at, as a ``sentence`` and as ``values``.
 *
 * ``kind`` is ``reward-rate``, ``missing-rewards``, ``refits``, ``silent-arm`` or ``late-arm``;
 * ``subject`` is the arm that it is about.
 */
export interface Condition {
  kind: string;
  sentence: string;
  values: Record<string, number>;
  subject?: string;
}

/**
 * A field of a context: a category if it has ``values``, else a number.
 *
 * ``default`` is used if the field is missing, or if its category is unknown.
 */
export interface ContextField {
  type?: "category" | "number" | null;
  values?: string[] | null;
  default?: string | number | null;
}

/** A bandit to declare. All fields but name and actions are optional. */
export interface Create {
  name: string;
  /** Names of arms, or a table of slots: names of choices, or [low, high]. */
  actions: string[] | Record<string, (string | number)[]>;
  context?: Record<string, string | string[] | ContextField> | null;
  policy?: string | Record<string, unknown> | null;
  rewards?: string | Record<string, unknown> | null;
  combine?: "first" | "last" | "max" | "sum" | null;
  reward_wait?: number | null;
  no_reward_after?: number | null | null;
  default_reward?: number | null | null;
  quarantine?: number | null;
  guard_rails?: GuardRails | null;
  sticky?: "none" | "version" | number | null;
  refit_rows?: number | null;
  refit_seconds?: number | null;
  status?: "active" | "archived" | "paused" | null;
  seed?: number | null;
  keep_versions?: number | null;
  action_features?: Record<string, Record<string, number | string | Record<string, number | string>>> | null;
}

/** A request for a decision. */
export interface Decide {
  /** The fields of the context; left out if the bandit has none. */
  context?: Record<string, number | string | null> | null;
  /** The id of the decision: the same id again gives the same decision. */
  id?: string | null;
  /** The arms that may be chosen, or a table of slots with their choices. */
  eligible?: string[] | Record<string, string[]> | null;
  /** If false, the decision is learned from only if it is activated in time. */
  activate?: boolean;
  /** The visitor or customer to decide for. */
  unit?: string | null;
}

/** Several decisions: all of them are made, or none. */
export interface DecideMany {
  requests: Decide[];
}

/** The version that is live now. */
export interface Deciding {
  version: number;
}

/**
 * A decision of a live bandit; with a store it is durable before the caller gets it.
 *
 * ``propensity`` is the probability with which the action was drawn, ``version`` the number of the
 * version that drew it. A decision of the ``holdout`` has the baseline action and is not learned
 * from. ``repeated``: the decision was made by an earlier call with the same id. ``unit`` is the
 * one that the caller named. ``paused``: the bandit was paused, and no policy chose the action.
 */
export interface Decision {
  id: string;
  action: string | Record<string, string | number>;
  propensity: number;
  version: number;
  holdout?: boolean;
  repeated?: boolean;
  unit?: string | null;
  paused?: boolean;
}

/** Decisions in the order of the requests. */
export interface Decisions {
  decisions: Decision[];
}

/** Deletes all decisions and rewards of a unit. */
export interface Erase {
  unit: string;
  /** Keep the decisions, and delete only the name of the unit. */
  anonymous?: boolean;
}

/** How many decisions were erased. */
export interface Erased {
  decisions: number;
}

/** An error: one sentence for people, and a code for programs. Nothing was changed. */
export interface Failure {
  error: string;
  code: string;
}

/**
 * Limits that hold whatever the policy decides.
 *
 * Every eligible action has at least the probability ``minimum``. The action ``control`` has
 * exactly the probability ``control_share`` if it is eligible. The first ``burn_in`` decisions are
 * drawn uniformly within these two limits; between versions, each process on a shared store counts
 * its own decisions. A share ``holdout`` of the decisions gets the action ``baseline`` and is not
 * learned from, so the policy can be compared with the baseline. With ``aa_test`` the holdout is
 * decided by the policy as well, so both groups are alike and every difference is an error.
 */
export interface GuardRails {
  minimum?: number;
  control?: string | Record<string, string | number> | null;
  control_share?: number;
  burn_in?: number;
  holdout?: number;
  baseline?: string | Record<string, string | number> | null;
  aa_test?: boolean;
}

/** The state of the server. */
export interface Health {
  status: string;
}

/**
 * What a key allows: ``scopes`` on ``bandits`` (None: all), ``rate`` requests a second.
 *
 * From ``expires`` on, a Unix time, the key is refused; None: never. A key with ``origins`` is
 * part of the pages of these sites, where anyone can read it: it may decide and reward, and
 * nothing else. It was ``used`` last at a Unix time, if ever.
 */
export interface Key {
  id: string;
  scopes: string[];
  bandits?: string[] | null;
  rate?: number | null;
  name?: string;
  created?: number;
  expires?: number | null;
  origins?: string[] | null;
  used?: number | null;
}

/** All keys, without their secrets. */
export interface KeyList {
  keys: Key[];
}

/** A new key; this is the only answer that contains it. */
export interface KeyMade {
  id: string;
  key: string;
}

/**
 * The difference in reward per decision between a bandit and a group, ``against`` it.
 *
 * With 95 % probability the truth is between ``low`` and ``high`` at all times together, however
 * often you look; None: unknown on this side. The truth is the mean difference over all decisions
 * that have matured since the groups were last changed. ``exact``: this holds for any number of
 * decisions, not only for large samples. ``cautions`` say what the interval relies on. In an
 * ``aa_test`` both groups are treated alike, and ``alarm`` means that they differ nevertheless, or
 * that their sizes are wrong.
 */
export interface LiftReport {
  against: string;
  action: unknown;
  estimate: number | null;
  low: number | null;
  high: number | null;
  exact: boolean;
  mean: number | null;
  mean_of_group: number | null;
  decisions: number;
  decisions_of_group: number;
  sample_ratio: SampleRatioReport | null;
  aa_test: boolean;
  alarm: boolean;
  cautions: string[];
}

/** The lift of a bandit over its holdout and over its control, as far as they are declared. */
export interface Lifts {
  lifts: LiftReport[];
}

/** A new key. */
export interface NewKey {
  scopes: ("admin" | "decide" | "read" | "reward")[];
  /** The bandits that the key is for; all if left out. */
  bandits?: string[] | null;
  /** Requests per second. */
  rate?: number | null;
  /** Shown in lists and in the audit. */
  name?: string;
  /** A date or a time in ISO 8601, after which the key is refused. */
  expires?: string | null;
  /** The sites whose pages contain the key, where anyone can read it. */
  origins?: string[] | null;
}

/** The version to make live and hold; without one, the newest version is followed. */
export interface Publish {
  version?: number | null;
}

/**
 * The receipt for a reward or an activation.
 *
 * ``status`` is
 *
 * - ``accepted``;
 * - ``late``: ``reward_wait`` was over, so the reward is stored but not learned from;
 * - ``quarantined``: no decision of the store has this id yet. The reward waits for it, for the
 * seconds of the setting ``quarantine``;
 * - ``conflict``: another value is stored under the same id and key, so this one is not.
 *
 * ``repeated``: a reward or activation was stored before under the same id and key. With
 * ``reward_wait=0`` a decision is learned from at its first reward; further rewards are accepted
 * and stored, but not learned from.
 */
export interface Receipt {
  id: string;
  status: string;
  repeated?: boolean;
}

/** Receipts in the order of the rewards. */
export interface Receipts {
  receipts: Receipt[];
}

/** The reward of a decision; if a decision has several rewards, each needs its own key. */
export interface Reward {
  /** The id of the decision. */
  id: string;
  /** The reward; or a table of named rewards or of slots, or a list with a number for each slot. */
  value: number | Record<string, number> | number[];
  /** Distinguishes several rewards of a decision; by default the name. */
  key?: string | null;
  /** Which declared reward this is. */
  name?: string | null;
  /** The slot that is rewarded, if each has a reward. */
  slot?: string | null;
}

/** Several rewards: all of them are recorded, or none. */
export interface RewardMany {
  rewards: Reward[];
}

/**
 * Whether a group has the share that it should have.
 *
 * If it does, the chance that ``p_value`` is ever below ε is at most ε; ``alarm``: it is below
 * 0.01.
 */
export interface SampleRatioReport {
  expected: number;
  observed: number;
  p_value: number;
  alarm: boolean;
}

/** Settings to change; those that are left out stay as they are, and null restores a default. */
export interface Set {
  context?: Record<string, string | string[] | ContextField> | null;
  policy?: string | Record<string, unknown> | null;
  rewards?: string | Record<string, unknown> | null;
  combine?: "first" | "last" | "max" | "sum" | null;
  reward_wait?: number | null;
  no_reward_after?: number | null | null;
  default_reward?: number | null | null;
  quarantine?: number | null;
  guard_rails?: ChangedGuardRails | null;
  sticky?: "none" | "version" | number | null;
  refit_rows?: number | null;
  refit_seconds?: number | null;
  status?: "active" | "archived" | "paused" | null;
  seed?: number | null;
  keep_versions?: number | null;
}

/**
 * A version: what it was fitted to, why, and the hash of its model.
 *
 * It learned from the ``rows`` decisions that matured up to the time ``cursor``, with the choices
 * ``active``. ``ahead`` decisions were expected before the next version. ``kept``: its model is
 * still in the store.
 */
export interface StoredVersion {
  version: number;
  at: number;
  policy: string | Record<string, unknown>;
  rows: number;
  cursor: number;
  seed: number;
  active: number[][];
  ahead: number;
  reason: string;
  model: string;
  kept?: boolean;
}

/** All versions, and the live one. */
export interface Versions {
  versions: StoredVersion[];
  deciding: number;
  held: boolean;
}

/** Every operation of a server, one method for each. */
export declare class Api {
  constructor(address: string, options?: TransportOptions);
  /** Choose an action; the same id again gives the same decision. */
  decide(name: string, body?: Decide, options?: CallOptions): Promise<Decision>;
  /** Choose several actions, all or none. */
  decideMany(name: string, body: DecideMany, options?: CallOptions): Promise<Decisions>;
  /** Record the reward of a decision; repeating it changes nothing. */
  reward(name: string, body: Reward, options?: CallOptions): Promise<Receipt>;
  /** Record several rewards; one that conflicts gets the receipt 'conflict'. */
  rewardMany(name: string, body: RewardMany, options?: CallOptions): Promise<Receipts>;
  /** Confirm a decision that was made with activate = false. */
  activate(name: string, body: Activate, options?: CallOptions): Promise<Receipt>;
  /** All bandits. */
  list(options?: CallOptions): Promise<Bandits>;
  /** Declare a bandit. */
  create(body: Create, options?: CallOptions): Promise<BanditDetails>;
  /** A bandit with its current settings and counts. */
  show(name: string, options?: CallOptions): Promise<BanditDetails>;
  /** Change settings, the policy or guard rails, all or none; null restores a default. */
  set(name: string, body?: Set, options?: CallOptions): Promise<BanditDetails>;
  /** Delete a bandit with its decisions and versions forever; the answer lists the rest. */
  delete(name: string, options?: CallOptions): Promise<Bandits>;
  /** Decide by the control, the baseline or uniformly, and learn nothing, until resumed. */
  pause(name: string, options?: CallOptions): Promise<BanditDetails>;
  /** Let a paused or archived bandit decide and learn again. */
  resume(name: string, options?: CallOptions): Promise<BanditDetails>;
  /** Refuse decisions and rewards; what is stored can still be read. */
  archive(name: string, options?: CallOptions): Promise<BanditDetails>;
  /** Add, pause, resume or retire an arm or a choice. */
  change(name: string, body: ChangeChoice, options?: CallOptions): Promise<BanditDetails>;
  /** The extra reward per decision, compared with the holdout or the control. */
  lift(name: string, options?: CallOptions): Promise<Lifts>;
  /** Delete all decisions and rewards of a unit, or make them anonymous. */
  erase(name: string, body: Erase, options?: CallOptions): Promise<Erased>;
  /** All decisions with their rewards, as a Parquet file. */
  export(name: string, options?: CallOptions): Promise<ArrayBuffer>;
  /** All versions. */
  versions(name: string, options?: CallOptions): Promise<Versions>;
  /** Make a version live and hold it; without one, follow the newest version. */
  publish(name: string, body?: Publish, options?: CallOptions): Promise<Deciding>;
  /** Go back to the version before the current one, and hold it. */
  rollBack(name: string, options?: CallOptions): Promise<Deciding>;
  /** All keys, without secrets. */
  keys(options?: CallOptions): Promise<KeyList>;
  /** Create a key; only this answer contains it. */
  addKey(body: NewKey, options?: CallOptions): Promise<KeyMade>;
  /** Revoke a key. */
  revokeKey(id: string, options?: CallOptions): Promise<KeyList>;
  /** The last 1000 changes, newest first: who made them, when, and what they changed. */
  audit(options?: CallOptions): Promise<Audit>;
  /** Whether the process answers. */
  health(options?: CallOptions): Promise<Health>;
  /** Whether the store can write, and every bandit was opened, or named in the log as impossible to open. */
  ready(options?: CallOptions): Promise<Health>;
}
