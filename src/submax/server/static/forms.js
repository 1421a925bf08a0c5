// Forms are sent as JSON to the same interface that programs use.
"use strict";
(() => {
  const numbers = new Set(["number", "range"]);

  // A name, a number, or JSON; nothing stands for null.
  function plain(text) {
    if (text === "") return null;
    return /^[[{"]/.test(text) || (text !== "" && !isNaN(Number(text))) ? JSON.parse(text) : text;
  }

  // Names that are separated by commas.
  const listed = (text) => text.split(",").map((one) => one.trim()).filter(Boolean);

  // A field of a context a line: "device = phone, desk" or "age = number".
  function fields(text) {
    const found = {};
    for (const line of text.split("\n").filter((one) => one.trim())) {
      const [name, ...rest] = line.split("="), values = rest.join("=").trim();
      if (!name.trim() || !values) throw new Error(`"${line.trim()}" is no field: write for example "device = phone, desk" or "age = number".`);
      found[name.trim()] = values === "number" ? "number" : listed(values);
    }
    return found;
  }

  // A name with a point is a place in a table.
  function put(found, name, value) {
    const [table, key] = name.split(".");
    if (key === undefined) found[table] = value;
    else (found[table] ||= {})[key] = value;
  }

  // Whether a field is not as it was loaded.
  function changed(one) {
    if (one.type === "checkbox") return one.checked !== one.defaultChecked;
    return one.value !== before(one);
  }
  const before = (one) => (one.tagName === "SELECT" ? ([...one.options].find((option) => option.defaultSelected) ?? one.options[0]).value : one.defaultValue);

  function values(form) {
    const found = {};
    for (const one of form.elements) {
      if (!one.name || one.disabled || (one.type === "checkbox" && one.name.endsWith("[]") && !one.checked)) continue;
      if (form.dataset.changes !== undefined && !changed(one)) continue;
      let value = one.type === "checkbox" ? one.checked : one.value;
      if (numbers.has(one.type)) value = one.value === "" ? null : Number(one.value);
      if (one.dataset.value !== undefined) value = plain(one.value.trim());
      if (one.dataset.list !== undefined) value = listed(one.value);
      if (one.dataset.fields !== undefined) value = fields(one.value);
      if (one.dataset.optional !== undefined && Array.isArray(value) && !value.length) value = null;
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
    // A page with the focus in a form is not replaced, so what was typed can be corrected.
    if (text) fields[0]?.focus();
  }

  function headers(form) {
    const found = { "Content-Type": "application/json", Accept: "application/json" };
    // A key is sent once, in the header where programs send it, and never kept by the page.
    if (form.dataset.login !== undefined) found.Authorization = `Bearer ${form.querySelector("input[type=password]").value.trim()}`;
    return found;
  }

  // What will change, from what to what, and what follows from it.
  function question(form) {
    if (form.dataset.changes === undefined) return form.dataset.confirm;
    const fields = [...form.elements].filter((one) => one.name && changed(one));
    const shown = (one, value, checked) => (one.type === "checkbox" ? (checked ? "on" : "off") : value || "none");
    const lines = fields.map((one) => `${one.dataset.label}: ${shown(one, before(one), one.defaultChecked)} → ${shown(one, one.value, one.checked)}`);
    const consequences = [...new Set(fields.map((one) => one.dataset.consequence).filter(Boolean))];
    return fields.length ? [`Change ${fields.length === 1 ? "this setting" : "these settings"}?`, ...lines, ...consequences].join("\n") : "";
  }

  const filled = (text, found) => text.replace(/\{(\w+)\}/g, (_, name) => found[name] ?? "");

  async function send(form) {
    const button = form.querySelector("button:not([type=button])");
    let body;
    say("");
    refuse(form, "");
    try { body = values(form); } catch (error) {
      refuse(form, error instanceof SyntaxError ? "This is not valid JSON: correct it and send it again." : error.message);
      return;
    }
    if (form.dataset.changes !== undefined && !Object.keys(body).length) { say("Nothing was changed.", "good"); return; }
    const asked = question(form);
    if (asked && !confirm(asked)) return;
    button.disabled = true;
    try {
      const answer = await fetch(form.action, {
        method: form.dataset.method || "POST", credentials: "same-origin",
        headers: headers(form), body: form.dataset.method === "DELETE" ? undefined : JSON.stringify(body),
      });
      const found = await answer.json().catch(() => ({}));
      if (!answer.ok) { refuse(form, found.error || `The server answered ${answer.status}.`); return; }
      if (form.dataset.then) { location.assign(filled(form.dataset.then, { name: encodeURIComponent(body?.name ?? "") })); return; }
      // Until the page shows what was saved, the fields count as changed: nothing is sent before.
      await refresh().catch(() => {});
      say(filled(form.dataset.done || "Done.", found), "good");
      if (found.key) say(`Your key is ${found.key}. Copy it now: it is not shown again.`, "good");
    } catch { say("The server did not answer, so the change may not have been made. Try again.", "bad"); }
    finally { button.disabled = false; }
  }

  function refresh() { return htmx.ajax("GET", location.href, { target: "#content", select: "#content", swap: "outerHTML" }); }

  addEventListener("submit", (event) => {
    if (event.target.dataset.api === undefined) return;
    event.preventDefault();
    send(event.target);
  });

  // A page is not replaced while somebody types in it, and what was unfolded stays so. A page that
  // nobody sees is not loaded again, so open tabs cost the server nothing.
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
  const LOST = "The server does not answer. This page shows older data, and keeps trying.";
  const BUSY = "The server is busy. This page shows older data, and keeps trying.";
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
