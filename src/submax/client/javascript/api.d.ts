// This file is generated from the OpenAPI description by clients/typescript/generate.py.
import type { CallOptions, TransportOptions } from "./transport.js";

/** Confirms a decision that was made with ``activate`` = false: its action was carried out. */
export interface Activate {
  id: string;
}

/**
 * An alarm in one sentence, with its time and its values.
 *
 * It is ``active`` until it is over or acknowledged. ``subject`` is the field of the context, if
 * it is about one.
 */
export interface AlarmDetails {
  kind: string;
  at: string;
  active: boolean;
  sentence: string;
  subject: string;
  values: Record<string, number>;
}

/**
 * When there is an alarm.
 *
 * ``false_alarms`` is the largest chance of a false alarm about the reward rate, and about
 * missing rewards, within 100,000 decisions. ``smallest_propensity`` is an alarm if an action was
 * drawn with a smaller probability; 0: it never is.
 */
export interface AlarmSettings {
  false_alarms?: number;
  smallest_propensity?: number;
}

/** The last 100 alarms, newest first. */
export interface Alarms {
  alarms: AlarmDetails[];
}

/**
 * A choice with its numbers.
 *
 * ``share`` is its share of all decisions, ``rows`` is the number of decisions that were learned
 * from, and ``reward_rate`` is their mean reward, with a 95 % interval for one look from ``low``
 * to ``high``. For plain arms, rewards are weighted by 1 / propensity, so that an arm is not
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
  changes: AuditedChange[];
}

/**
 * A change: who made it (the id and the name of a key), when, and what was changed.
 *
 * ``subject`` is a bandit or the id of a key, and ``detail`` the begin of the request.
 */
export interface AuditedChange {
  at: string;
  key: string;
  name: string;
  operation: string;
  subject: string;
  detail: string;
}

/**
 * A bandit with its settings and counts; plain arms are one slot with an empty name.
 *
 * ``context_ignored``: there is a context, and the policy does not use it. ``failures``: how often
 * something failed since the server was started, and the bandit went on, by kind of failure.
 * ``arms`` are the choices with their decisions, reward rates and probabilities, and ``notices``
 * are sentences about what should be looked at. ``alarms``: active
 * alarms by kind.
 */
export interface BanditDetails {
  name: string;
  actions: Record<string, (number | ChoiceDetails)[]>;
  context: Record<string, unknown>;
  policy: unknown;
  context_ignored: boolean;
  rewards: Record<string, unknown>;
  combine: string;
  reward_wait: number;
  no_reward_after: number | null;
  default_reward: number | null;
  guard_rails: GuardRails;
  version: number;
  held: boolean;
  counts: Record<string, number>;
  failures: Record<string, number>;
  status: string;
  sticky: string | number;
  quarantine: number;
  refit_rows: number;
  refit_seconds: number;
  seed: number;
  keep_versions: number;
  archive_after: number | null;
  arms: ArmStatus[];
  notices: string[];
  alarms: Record<string, number>;
}

/** The names of all bandits. */
export interface Bandits {
  bandits: string[];
}

/**
 * A change to an arm, or to a choice of a slot: add, pause, resume or retire it.
 *
 * If the other choices have ``features``, a new one must have the same ones. A new choice is
 * ramped up over ``ramp`` decisions: null for the default, 0 for no ramp.
 */
export interface ChangeChoice {
  verb: "add" | "pause" | "resume" | "retire";
  choice: string;
  slot?: string;
  features?: Record<string, number | string>;
  ramp?: number | null;
}

/** Guard rails to be changed; others stay as they are. */
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
 * A field of a context: a category if it has ``values``, else a number.
 *
 * ``default`` is used if the field is missing, or if its category is unknown.
 */
export interface ContextField {
  values?: string[] | null;
  default?: string | number | null;
}

/** A bandit to be declared. */
export interface Create {
  name: string;
  /** Names of arms, or a table of slots: names of choices, or [low, high]. */
  actions: string[] | Record<string, (string | number)[]>;
  context?: Record<string, string | string[] | ContextField> | null;
  policy?: string | Record<string, unknown> | null;
  rewards?: string | Record<string, unknown> | null;
  combine?: "first" | "last" | "max" | "sum" | null;
  reward_wait?: number | null;
  no_reward_after?: number | null;
  default_reward?: number | null;
  quarantine?: number | null;
  guard_rails?: GuardRails | null;
  alarms?: AlarmSettings | null;
  sticky?: "none" | "version" | number | null;
  refit_rows?: number | null;
  refit_seconds?: number | null;
  status?: "active" | "archived" | "paused" | null;
  seed?: number | null;
  keep_versions?: number | null;
  archive_after?: number | null;
  action_features?: Record<string, Record<string, number | string | Record<string, number | string>>> | null;
}

/** A request for a decision; the context may be left out if the bandit has none. */
export interface Decide {
  context?: Record<string, number | string | null> | null;
  id?: string | null;
  eligible?: string[] | Record<string, string[]> | null;
  activate?: boolean;
  unit?: string | null;
}

/** A request for several decisions, of which all are made or none. */
export interface DecideMany {
  requests: Decide[];
}

/** The version that decides now. */
export interface Deciding {
  version: number;
}

/**
 * A decision of a live bandit, which is durable before the caller gets it.
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
 * drawn uniformly within these two limits; each process on a shared store counts its own
 * decisions. A share ``holdout`` of the decisions gets the action ``baseline`` and is not learned
 * from, so that the policy can be compared with the baseline. With ``aa_test`` the holdout is
 * decided by the policy as well, so that both groups are alike and every difference is an error.
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
 * A key without its secret.
 *
 * ``expires`` and ``last_used`` are times; None if the key does not expire, or was never used.
 */
export interface KeyDetails {
  id: string;
  name: string;
  scopes: string[];
  bandits: string[] | null;
  rate: number | null;
  expires: string | null;
  last_used: string | null;
  browser: boolean;
}

/** A new key; this is the only answer that has its text. */
export interface KeyMade {
  id: string;
  key: string;
}

/** All keys. */
export interface Keys {
  keys: KeyDetails[];
}

/**
 * The difference in reward per decision between a bandit and a group, ``against`` it.
 *
 * With a chance of 95 % the truth is between ``low`` and ``high`` at all times together, however
 * often one looks; None: nothing can be said on this side. The truth is the mean difference over
 * all decisions that have matured since the groups were last changed. ``exact``: the chance
 * holds for any number of decisions, not only for large samples. ``cautions`` are sentences about
 * what the interval relies on. In an ``aa_test`` both groups decide alike, and ``alarm`` means
 * that they differ nevertheless, or that their sizes are wrong.
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

/**
 * A new key: its scopes, its bandits (all if left out), and its requests a second.
 *
 * ``name`` is shown in lists and in the audit. From ``expires`` on, a date or a time in the form
 * of ISO 8601, the key is refused. A ``browser`` key may be part of web pages of declared origins;
 * it may have the scopes decide and reward.
 */
export interface NewKey {
  scopes: ("admin" | "decide" | "read" | "reward")[];
  bandits?: string[] | null;
  rate?: number | null;
  name?: string;
  expires?: string | null;
  browser?: boolean;
}

/** The version that decides and is held; without a version, the newest and later ones decide. */
export interface Publish {
  version?: number | null;
}

/**
 * The receipt for a reward or an activation.
 *
 * ``status`` is
 *
 * - ``accepted``;
 * - ``late``: ``reward_wait`` was over, or the decision is in the archive already, so that the
 * reward is stored but not learned from;
 * - ``quarantined``: no decision has this id yet. The reward waits for the decision, for the
 * seconds of the setting ``quarantine``;
 * - ``conflict``: another value is stored under the same id and key, so that this one is not.
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

/**
 * The reward of a decision; if a decision has several rewards, each needs its own key.
 *
 * If rewards were declared with names, ``name`` is the name of this one, or ``value`` is a table
 * of names; the key is then the name, unless one is given. If every slot has a reward, ``slot`` is
 * the slot, or ``value`` is a table of slots or a list with a number for each slot.
 */
export interface Reward {
  id: string;
  value: number | Record<string, number> | number[];
  key?: string | null;
  name?: string | null;
  slot?: string | null;
}

/** Several rewards, of which all are recorded or none. */
export interface RewardMany {
  rewards: Reward[];
}

/** Whether a group has the share that it should have; see ``SampleRatio``. */
export interface SampleRatioReport {
  expected: number;
  observed: number;
  p_value: number;
  alarm: boolean;
}

/** Settings to be changed; others stay as they are. */
export interface Set {
  context?: Record<string, string | string[] | ContextField> | null;
  policy?: string | Record<string, unknown> | null;
  rewards?: string | Record<string, unknown> | null;
  combine?: "first" | "last" | "max" | "sum" | null;
  reward_wait?: number | null;
  no_reward_after?: number | null;
  default_reward?: number | null;
  quarantine?: number | null;
  guard_rails?: ChangedGuardRails | null;
  alarms?: AlarmSettings | null;
  sticky?: "none" | "version" | number | null;
  refit_rows?: number | null;
  refit_seconds?: number | null;
  status?: "active" | "archived" | "paused" | null;
  seed?: number | null;
  keep_versions?: number | null;
  archive_after?: number | null;
}

/** A version: the hash of its model, and the rows that it was fitted to. */
export interface VersionDetails {
  version: number;
  model: string;
  policy: unknown;
  rows: number;
  learned: number;
  rows_hash: string;
  seed: number;
}

/** All versions, and the one that decides. */
export interface Versions {
  versions: VersionDetails[];
  deciding: number;
  held: boolean;
}

/** Every operation of a server, one method for each. */
export declare class Api {
  constructor(address: string, options?: TransportOptions);
  /** Choose an action; the same id again gives the same decision. */
  decide(name: string, body: Decide, options?: CallOptions): Promise<Decision>;
  /** Choose several actions, all or none. */
  decideMany(name: string, body: DecideMany, options?: CallOptions): Promise<Decisions>;
  /** Record the reward of a decision; the same again changes nothing. */
  reward(name: string, body: Reward, options?: CallOptions): Promise<Receipt>;
  /** Record several rewards; one that conflicts gets the receipt 'conflict'. */
  rewardMany(name: string, body: RewardMany, options?: CallOptions): Promise<Receipts>;
  /** Confirm a decision that was made with activate = false. */
  activate(name: string, body: Activate, options?: CallOptions): Promise<Receipt>;
  /** All bandits. */
  list(options?: CallOptions): Promise<Bandits>;
  /** Declare a bandit. */
  create(body: Create, options?: CallOptions): Promise<BanditDetails>;
  /** A bandit as it stands. */
  show(name: string, options?: CallOptions): Promise<BanditDetails>;
  /** Delete a bandit with its log and versions, for ever; the answer lists the others. */
  delete(name: string, options?: CallOptions): Promise<Bandits>;
  /** Change settings, the policy or guard rails, all or none; null stands for a default. */
  set(name: string, body: Set, options?: CallOptions): Promise<BanditDetails>;
  /** Add, pause, resume or retire an arm or a choice. */
  change(name: string, body: ChangeChoice, options?: CallOptions): Promise<BanditDetails>;
  /** All decisions with their rewards, as a Parquet file. */
  export(name: string, options?: CallOptions): Promise<ArrayBuffer>;
  /** Answer with the control, the baseline or uniformly, and do not learn from it. */
  pause(name: string, options?: CallOptions): Promise<BanditDetails>;
  /** Let a paused or archived bandit decide and learn again. */
  resume(name: string, options?: CallOptions): Promise<BanditDetails>;
  /** Refuse decisions and rewards; the log can still be read. */
  archive(name: string, options?: CallOptions): Promise<BanditDetails>;
  /** How much more a decision earns than one of the holdout or the control. */
  lift(name: string, options?: CallOptions): Promise<Lifts>;
  /** All versions. */
  versions(name: string, options?: CallOptions): Promise<Versions>;
  /** Let a version decide and hold it; without one, the newest and later ones decide. */
  publish(name: string, body: Publish, options?: CallOptions): Promise<Deciding>;
  /** Let the version before the current one decide. */
  rollBack(name: string, options?: CallOptions): Promise<Deciding>;
  /** The last 100 alarms, newest first. */
  alarms(name: string, options?: CallOptions): Promise<Alarms>;
  /** Say that all alarms were seen, so that they are no longer active. */
  acknowledgeAlarms(name: string, options?: CallOptions): Promise<Alarms>;
  /** All keys, without secrets. */
  keys(options?: CallOptions): Promise<Keys>;
  /** Make a key; only this answer has its text. */
  addKey(body: NewKey, options?: CallOptions): Promise<KeyMade>;
  /** Revoke a key. */
  revokeKey(id: string, options?: CallOptions): Promise<Keys>;
  /** The last 1000 changes, newest first: who made them, when, and what they changed. */
  audit(options?: CallOptions): Promise<Audit>;
  /** Whether the process answers. */
  health(options?: CallOptions): Promise<Health>;
  /** Whether the store can write, and every bandit was opened, or named in the log as impossible to open. */
  ready(options?: CallOptions): Promise<Health>;
}
