export { Api } from "./api.js";
export { Bandit } from "./bandit.js";
export { newIdentifier } from "./identifier.js";
export { SubmaxError } from "./transport.js";
