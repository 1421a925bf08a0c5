/** An error that a server reported, or that no answer came (`status` 0). */
export declare class SubmaxError extends Error {
  readonly status: number;
  /** A word for programs, such as `conflict`; it stays the same if the sentence changes. */
  readonly code: string;
  constructor(message: string, status?: number, code?: string);
}

export interface TransportOptions {
  /** A key that `submax keys add` has printed; in a web page one with `--origin`. */
  key?: string;
  /** Milliseconds until a request is given up; 10 seconds if absent. */
  timeout?: number;
  /** In place of the global `fetch`. */
  fetch?: typeof fetch;
}

export interface CallOptions {
  signal?: AbortSignal;
  /** Let the browser finish the request even if the page is left. */
  keepalive?: boolean;
}

/** Sends requests to a server by `fetch`, one at a time, without repeating them. */
export declare class Transport {
  constructor(address: string, options?: TransportOptions);
  url(path: string): string;
  call<Answer>(
    method: string,
    path: string,
    body?: unknown,
    options?: CallOptions,
  ): Promise<Answer>;
  bytes(
    method: string,
    path: string,
    body?: unknown,
    options?: CallOptions,
  ): Promise<ArrayBuffer>;
}
