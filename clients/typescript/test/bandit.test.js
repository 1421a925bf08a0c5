import assert from "node:assert/strict";
import { test } from "node:test";

import {
  Api,
  Bandit,
  newIdentifier,
  SubmaxError,
} from "../../../src/submax/client/javascript/index.js";

/** A fetch that answers by a function of the path and the body, and keeps what it was sent. */
function answering(answer) {
  const seen = [];
  const fetch = async (url, { body, headers, keepalive, signal }) => {
    const { pathname } = new URL(url);
    const sent = body === undefined ? undefined : JSON.parse(body);
    seen.push({ path: pathname, body: sent, headers, keepalive });
    const [status, found] = await answer(pathname.split("/").pop(), sent, seen.length, signal);
    return new Response(JSON.stringify(found), { status });
  };
  return { seen, fetch };
}

const receipt = ({ id }) => ({ id, status: "accepted", repeated: false });

/** A server that refuses a reward of 5, and has another value for the id "taken". */
function server(word, body) {
  if (body.value === 5) return [400, { error: "no 5", code: "invalid-input" }];
  if (body.id === "taken") return [409, { error: "another value", code: "conflict" }];
  return word === "decide"
    ? [200, { id: body.id, action: "A", propensity: 0.5, version: 0 }]
    : [200, receipt(body)];
}

test("each reward has its own answer, and a page that is left has it sent", async () => {
  const { seen, fetch } = answering(server);
  const bandit = new Bandit("http://127.0.0.1:1", "page", { fetch });
  const found = await Promise.allSettled([
    bandit.reward("a", 1, { keepalive: true }),
    bandit.reward("taken", 1),
    bandit.reward("c", 5),
  ]);
  assert.deepEqual(found.map((one) => one.status), ["fulfilled", "rejected", "rejected"]);
  assert.equal(found[1].reason.code, "conflict");
  assert.ok(found[2].reason instanceof SubmaxError);
  assert.deepEqual(seen[0].body, { id: "a", value: 1 });
  assert.deepEqual(seen.map((one) => one.keepalive), [true, false, false]);
});

test("a request that fails is sent again with the same id", async () => {
  const { seen, fetch } = answering((word, body, count) => {
    if (count === 1) throw new TypeError("fetch failed");
    return count === 2 ? [503, { error: "busy", code: "unavailable" }] : server(word, body);
  });
  const bandit = new Bandit("http://127.0.0.1:1", "page", { fetch, key: "submax.a.b" });
  assert.equal((await bandit.decide({ age: 3 })).action, "A");
  assert.equal(seen.length, 3);
  assert.equal(new Set(seen.map((one) => one.body.id)).size, 1);
  assert.equal(seen[0].headers.authorization, "Bearer submax.a.b");
});

test("after its attempts an error says that no answer came", async () => {
  const { seen, fetch } = answering(() => {
    throw new TypeError("fetch failed");
  });
  const bandit = new Bandit("http://127.0.0.1:1", "page", { fetch, attempts: 2 });
  await assert.rejects(bandit.decide(), { code: "no-answer", status: 0 });
  assert.equal(seen.length, 2);
});

test("a server that does not answer is given up", async () => {
  const { fetch } = answering(
    (word, body, count, signal) =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
  );
  const bandit = new Bandit("http://127.0.0.1:1", "page", { fetch, attempts: 1, timeout: 20 });
  await assert.rejects(bandit.decide(), { code: "no-answer" });
});

test("an answer that stops in the middle is given up and asked for again", async () => {
  let count = 0;
  const fetch = async (address, { signal }) => {
    count += 1;
    if (count > 1) return new Response('{"id": "a", "action": "A", "propensity": 1, "version": 0}');
    const body = new ReadableStream({
      start(stream) {
        stream.enqueue(new TextEncoder().encode('{"id": '));
        signal.addEventListener("abort", () => stream.error(signal.reason));
      },
    });
    return new Response(body);
  };
  const bandit = new Bandit("http://127.0.0.1:1", "page", { fetch, timeout: 20 });
  assert.equal((await bandit.decide()).action, "A");
  assert.equal(count, 2);
});

test("an answer that is no JSON is not from a server of submax", async () => {
  const fetch = async () => new Response("<html>Welcome</html>");
  const bandit = new Bandit("http://127.0.0.1:1", "page", { fetch });
  await assert.rejects(bandit.decide(), { code: "no-submax-server", status: 200 });
});

test("a file may take longer than an answer", async () => {
  const body = () =>
    new ReadableStream({
      start(stream) {
        setTimeout(() => {
          stream.enqueue(new Uint8Array([1, 2]));
          stream.close();
        }, 60);
      },
    });
  const api = new Api("http://127.0.0.1:1", { fetch: async () => new Response(body()), timeout: 20 });
  assert.equal((await api.export("page")).byteLength, 2);
});

test("what a reward or a request has beside the usual is sent", async () => {
  const { seen, fetch } = answering(server);
  const bandit = new Bandit("http://127.0.0.1:1", "page", { fetch });
  await bandit.decide(undefined, { unit: "visitor-17", activate: false });
  await bandit.reward("a", { click: 1, purchase: 0 });
  await bandit.reward("b", 1, { name: "click" });
  const { id, ...decided } = seen[0].body;
  assert.deepEqual(decided, { unit: "visitor-17", activate: false });
  assert.equal(id.length, 36);
  assert.deepEqual(seen[1].body, { id: "a", value: { click: 1, purchase: 0 } });
  assert.deepEqual(seen[2].body, { name: "click", id: "b", value: 1 });
});

test("a number that is not finite is refused and not sent", async () => {
  const { seen, fetch } = answering(server);
  const bandit = new Bandit("http://127.0.0.1:1", "page", { fetch });
  await assert.rejects(bandit.reward("a", Number.NaN), TypeError);
  await assert.rejects(bandit.reward("a", { click: 1, purchase: Infinity }), TypeError);
  await assert.rejects(bandit.reward("a", null), TypeError);
  assert.equal(seen.length, 0);
});

test("ids are UUIDs of version 7, which sort by time", async () => {
  const before = newIdentifier();
  await new Promise((resume) => setTimeout(resume, 3));
  const after = newIdentifier();
  assert.match(before, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.ok(before < after);
});

test("an address that is none is refused", () => {
  assert.throws(() => new Bandit("127.0.0.1:8000", "page"), TypeError);
});

test("a request that is aborted between two attempts is not sent again", async () => {
  const stop = new AbortController();
  const { seen, fetch } = answering(() => {
    stop.abort();
    return [503, { error: "busy", code: "unavailable" }];
  });
  const bandit = new Bandit("http://127.0.0.1:1", "page", { fetch });
  await assert.rejects(bandit.decide(undefined, { signal: stop.signal }), { name: "AbortError" });
  assert.equal(seen.length, 1);
});
