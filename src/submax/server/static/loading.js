// Says that a page is being loaded, if it takes longer than a moment.
"use strict";
(() => {
  const PATIENCE = 300, LOADING = "Loading …";
  let waiting;

  function begin(text, patience) {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      document.getElementById("loading").textContent = text || LOADING;
      document.getElementById("content").setAttribute("aria-busy", "true");
    }, patience);
  }
  function end() {
    clearTimeout(waiting);
    document.getElementById("loading").textContent = "";
    document.getElementById("content").removeAttribute("aria-busy");
  }

  // A link or a form that leads to another page of this server; what takes long says what is done.
  addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    const elsewhere = event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
    if (!link || elsewhere || link.target || link.getAttribute("href").startsWith("#")) return;
    begin(link.dataset.loading, PATIENCE);
  });
  addEventListener("submit", (event) => {
    if (event.target.dataset.api === undefined) begin(event.target.dataset.loading, PATIENCE);
  });
  // A page that loads itself again does so silently, unless the server takes long.
  addEventListener("htmx:beforeSend", (event) => {
    begin("", event.detail.elt.id === "content" ? 10 * PATIENCE : PATIENCE);
  });
  addEventListener("htmx:afterRequest", end);
  // Also when one comes back to a page by the browser's button.
  addEventListener("pageshow", end);
})();
