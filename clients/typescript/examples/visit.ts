// What a visit is to a bandit: declare the bandit, decide, reward. Run it by
//   npm install http://127.0.0.1:8000/javascript/submax.tgz
//   tsc --target ES2022 --module ES2022 --moduleResolution node visit.ts && node visit.js
import { Api, Bandit, SubmaxError } from "submax";
import type { BanditDetails, Decision, Receipt } from "submax";

declare const process: { argv: string[] };

const address: string = process.argv[2] ?? "http://127.0.0.1:8000";
const api = new Api(address);
try {
  await api.create({ name: "visits", actions: ["A", "B", "C"] });
} catch (error) {
  if (!(error instanceof SubmaxError) || error.code !== "conflict") throw error;
}

const bandit = new Bandit(address, "visits");
const decisions: Decision[] = await Promise.all(
  Array.from({ length: 20 }, () => bandit.decide()),
);
const receipts: Receipt[] = await Promise.all(
  decisions.map((one) => bandit.reward(one.id, one.action === "B" ? 1 : 0)),
);
const details: BanditDetails = await api.show("visits");
console.log(details.name, new Set(receipts.map((one) => one.status)));
