// Forms are sent as JSON to the same interface that programs use, with the token of the session.
"use strict";
(() => {
  const meta = (name) => document.querySelector(`meta[name="${name}"]`)?.content || "";
  const numbers = new Set(["number", "range"]);

  // A name, a number, or JSON; nothing stands for null.
  function plain(text) {
    if (text === "") return null;
    return /^[[{"]/.test(text) || (text !== "" && !isNaN(Number(text))) ? JSON.parse(text) : text;
  }

  // A name with a point is a place in a table.
  function put(found, name, value) {
    const [table, key] = name.split(".");
    if (key === undefined) found[table] = value;
    else (found[table] ||= {})[key] = value;
  }

  function values(form) {
    const found = {};
    for (const one of form.elements) {
      if (!one.name || one.disabled || (one.type === "checkbox" && one.name.endsWith("[]") && !one.checked)) continue;
      let value = one.type === "checkbox" ? one.checked : one.value;
      if (numbers.has(one.type)) value = one.value === "" ? null : Number(one.value);
      if (one.dataset.value !== undefined) value = plain(one.value.trim());
      if (one.dataset.null !== undefined && value === "") value = null;
      if (one.dataset.json !== undefined) value = one.value.trim() === "" ? null : JSON.parse(one.value);
      if (value === "" && one.dataset.optional !== undefined) value = null;
      if (value === null && one.dataset.optional !== undefined) continue;
      if (one.name.endsWith("[]")) (found[one.name.slice(0, -2)] ||= []).push(one.value);
      else put(found, one.name, value);
    }
    return found;
  }

  function say(text, kind) {
    const place = document.getElementById("message");
    place.innerHTML = "";
    if (!text) return;
    const box = document.createElement("p");
    box.className = `notice ${kind}`;
    box.textContent = text;
    place.append(box);
  }

  // An error is shown beside the fields of its form if there is room for it.
  function refuse(form, text) {
    const place = form.querySelector(".error");
    if (!place) { say(text, "bad"); return; }
    place.textContent = text;
    const fields = [...form.elements].filter((one) => one.name);
    for (const one of fields) one.setAttribute("aria-invalid", text !== "");
    // A page with the focus in a form is not replaced, so that what was typed can be corrected.
    if (text) fields[0]?.focus();
  }

  function headers(form) {
    const found = { "Content-Type": "application/json", "X-CSRF-Token": meta("csrf-token"), Accept: "application/json" };
    // A key is sent once, in the header where programs send it, and never kept by the page.
    if (form.dataset.login !== undefined) found.Authorization = `Bearer ${form.querySelector("input[type=password]").value.trim()}`;
    return found;
  }

  async function send(form) {
    const button = form.querySelector("button");
    const question = form.dataset.confirm;
    if (question && !confirm(question)) return;
    let body;
    say("");
    refuse(form, "");
    try { body = values(form); } catch { refuse(form, "This is no valid JSON: correct it and send again."); return; }
    button.disabled = true;
    try {
      const answer = await fetch(form.action, {
        method: form.dataset.method || "POST", credentials: "same-origin",
        headers: headers(form), body: form.dataset.method === "DELETE" ? undefined : JSON.stringify(body),
      });
      const found = await answer.json().catch(() => ({}));
      if (!answer.ok) { refuse(form, found.error || `The server answered ${answer.status}.`); return; }
      if (form.dataset.then) { location.assign(form.dataset.then); return; }
      say((form.dataset.done || "Done.").replace("{version}", found.version), "good");
      if (found.key) say(`The key is ${found.key} and is shown only now: copy it.`, "good");
      refresh();
    } catch { say("The server did not answer: nothing is known to have changed. Try again.", "bad"); }
    finally { button.disabled = false; }
  }

  function refresh() { htmx.ajax("GET", location.href, { target: "#content", select: "#content", swap: "outerHTML" }); }

  addEventListener("submit", (event) => {
    if (event.target.dataset.api === undefined) return;
    event.preventDefault();
    send(event.target);
  });

  // A page is not replaced while somebody types in it, and what was unfolded stays so. A page that
  // nobody sees is not loaded again, so that open tabs cost the server nothing.
  let open = [];
  addEventListener("htmx:beforeRequest", (event) => {
    const typing = document.activeElement?.closest("#content form");
    if (event.detail.elt.id === "content" && (typing || document.hidden)) event.preventDefault();
  });
  // If nothing has changed since, the server says only that, and the page stays as it is.
  addEventListener("htmx:configRequest", (event) => {
    if (event.detail.elt.id === "content") event.detail.headers["If-None-Match"] = event.detail.elt.dataset.tag;
  });
  addEventListener("visibilitychange", () => {
    if (!document.hidden && document.querySelector("#content[hx-get]")) refresh();
  });
  addEventListener("htmx:beforeSwap", () => {
    open = [...document.querySelectorAll("#content details[open][id]")].map((one) => one.id);
  });
  addEventListener("htmx:afterSwap", () => {
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  });
  const LOST = "The server does not answer. This page shows what was known before, and tries again.";
  const BUSY = "The server is busy. This page shows what was known before, and tries again.";
  addEventListener("htmx:sendError", () => say(LOST, "bad"));
  addEventListener("htmx:responseError", (event) => {
    const { status } = event.detail.xhr;
    if (status === 429 || status === 503) say(BUSY, "bad");
    else if (status >= 500) say(LOST, "bad");
    // The bandit was deleted, or the key was revoked: the page itself then says so.
    else location.reload();
  });
  addEventListener("htmx:afterOnLoad", () => { if ([LOST, BUSY].includes(document.querySelector("#message .bad")?.textContent)) say(""); });
})();
