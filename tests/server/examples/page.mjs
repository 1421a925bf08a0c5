// Opens the page of the examples without a browser: a document of two elements, and a fetch that
// names the site of the page, as a browser does.
import { Bandit } from "../../../src/submax/client/javascript/index.js";
import { openShop } from "../../../examples/page/shop.js";

const [address, key, origin] = process.argv.slice(2);
const elements = {};
const page = {
  getElementById: (name) =>
    (elements[name] ??= { addEventListener: (event, act) => (elements[name].act = act) }),
};
const asPage = (url, options) =>
  fetch(url, { ...options, headers: { ...options.headers, origin } }).then((answer) => {
    // A browser gives an answer to the page only if the server allows its site.
    if (answer.headers.get("access-control-allow-origin") !== origin) throw new TypeError("CORS");
    return answer;
  });
await openShop(new Bandit(address, "shop", { key, fetch: asPage, attempts: 1 }), page);
await elements.buy.act?.();
console.log(JSON.stringify([elements.headline.textContent ?? "", elements.buy.textContent ?? ""]));
