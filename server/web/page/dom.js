// Makes elements. Texts go in as text, never as markup: names and errors come from clients and files.

// Properties that start with "on" are listeners, all others are attributes; undefined, null and false leave them out.
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on"))
      made.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null && value !== false)
      made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

// Writes only what changed, so that selections and screen readers are left alone.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Makes the children of `node` anew if `key` is not that of its last call; the focus stays where it was.
export function show(node, key, make) {
  if (node.dataset.shown === key) return;
  node.dataset.shown = key;
  const active = document.activeElement, name = (one) => one.id || one.getAttribute("href");
  const focused = node.contains(active) ? name(active) : null;
  node.replaceChildren(...make());
  if (focused) [...node.querySelectorAll("a, input")].find((one) => name(one) === focused)?.focus();
}

const PILLS = {
  READY: "good",
  RUNNING: "good",
  COMPLETED: "good",
  LOADING: "warn",
  UNLOADING: "warn",
  QUEUED: "warn",
  PAUSED: "warn",
  UNAVAILABLE: "bad",
  FAILED: "bad"
};
const WORDS = {
  READY: "ready",
  UNAVAILABLE: "unavailable",
  LOADING: "loading",
  UNLOADING: "unloading"
};

export function setPill(node, state) {
  setText(node, WORDS[state] || state.toLowerCase() || "not loaded");
  node.className = `pill ${PILLS[state] || "plain"}`;
}

export const modelLink = (name, version) =>
    `#/models/${encodeURIComponent(name)}${version ? `/${encodeURIComponent(version)}` : ""}`;
// What makes the server serve a model that it does not serve, as texts and elements.
export function loadHint(mode, name) {
  if (mode === "poll") return ["The server looks for changes of the folder by itself."];
  if (mode === "explicit") return ["Load it with ", element("code", {}, `tensord load ${name}`)];
  const poll = element("code", {}, "--model-control-mode poll");
  return ["Start the server again to load it; with ", poll, " it looks for changes by itself."];
}

export const jobLink = (id) => `#/jobs/${encodeURIComponent(id)}`;

// Settings of this browser; without storage they last as long as the page.
const unsaved = new Map();
export function setting(name, fallback) {
  try {
    return localStorage.getItem(`tensord.${name}`) ?? fallback;
  } catch {
    return unsaved.get(name) ?? fallback;
  }
}
export function saveSetting(name, value) {
  try {
    localStorage.setItem(`tensord.${name}`, value);
  } catch {
    unsaved.set(name, value);
  }
}
