// Compiled and never run: the compiler must find the mistakes that are expected here.
import { Api, Bandit } from "submax";

const api = new Api("http://127.0.0.1:8000");
// @ts-expect-error: actions are names, or a table of slots.
await api.create({ name: "page", actions: 3 });
// @ts-expect-error: a bandit needs a name.
await api.show();

const bandit = new Bandit("http://127.0.0.1:8000", "page");
const decision = await bandit.decide({ age: 30, country: "NO" });
// @ts-expect-error: a decision has no reward.
decision.reward;
// @ts-expect-error: a reward is a number.
await bandit.reward(decision.id, "1");
