// What a browser must do itself: theme before the first paint, keys, clipboard, small movements.
"use strict";

const mbCookie = (name) => (document.cookie.match(new RegExp("(?:^|; )" + name + "=([^;]*)")) || [])[1] || "";
const mbRemember = (name, value) => {
  document.cookie = `${name}=${encodeURIComponent(value)}; path=/; max-age=31536000; samesite=lax`;
};

function mbTheme() {
  const chosen = mbCookie("mb_theme") || "system";
  const light = window.matchMedia("(prefers-color-scheme: light)").matches;
  return chosen === "system" ? (light ? "light" : "dark") : chosen;
}
function mbApplyTheme() {
  document.documentElement.dataset.theme = mbTheme();
  window.dispatchEvent(new Event("mb-theme"));
}
function mbSetTheme(theme) {
  mbRemember("mb_theme", theme);
  mbApplyTheme();
}
document.documentElement.dataset.theme = mbTheme();
window.matchMedia("(prefers-color-scheme: light)").addEventListener("change", mbApplyTheme);
mbRemember("mb_zone", Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC");

const mbColour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim() || "#888";
const mbIsPhone = () => window.matchMedia("(max-width: 640px)").matches;
const mbIsMac = () => /Mac|iPhone|iPad/.test(navigator.platform);

function mbFacts() {
  return { zone: Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC", phone: mbIsPhone(), mac: mbIsMac(),
    width: window.innerWidth, height: window.innerHeight };
}

async function mbCopy(text) {
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = Object.assign(document.createElement("textarea"), { value: text });
    document.body.append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
  }
  mbSay(document.body.dataset[done ? "copied" : "notCopied"] || "Copied");
}

function mbKnow(words) {
  Object.assign(document.body.dataset, words);
  if (!window.mbLink) window.mbLink = new MbLink(words);
}

// The connection to the gateway: without it the last known state is dimmed, and nothing claims to be well.
const MB_RETRY_S = 5, MB_LOST_AFTER_MS = 700;
class MbLink {
  constructor(words) {
    this.words = words;
    setInterval(() => this.look(), 250);
  }
  look() {
    if (!window.socket || window.mbLeaving) return;
    if (window.socket.connected && window.did_handshake) return this.end();
    this.since ||= Date.now();
    if (Date.now() - this.since < MB_LOST_AFTER_MS) return;
    if (!this.banner) this.begin();
    const left = Math.max(0, Math.ceil((this.next - Date.now()) / 1000));
    if (Date.now() >= this.next) this.retry();
    this.button.textContent = left ? this.words.lostRetry.replace("{n}", left) : this.words.lostTrying;
  }
  begin() {
    const place = document.createElement("div");
    place.className = "mb-banner mb-lost-banner";
    place.setAttribute("role", "alert");
    const text = document.createElement("div");
    text.className = "mb-stack mb-grow";
    const since = new Date(this.since).toLocaleTimeString(document.documentElement.lang, { hour12: false });
    for (const [content, look] of [[this.words.lostGateway.replace("{time}", since), "mb-medium"], [this.words.lostAgain, "mb-meta"]])
      text.append(Object.assign(document.createElement("span"), { textContent: content, className: look }));
    this.button = Object.assign(document.createElement("button"), { className: "mb-btn", type: "button" });
    this.button.addEventListener("click", () => { this.next = Date.now(); });
    place.append(text, this.button);
    this.banner = place;
    this.next = Date.now() + MB_RETRY_S * 1000;
    document.querySelector(".mb-main")?.before(place);
    document.documentElement.classList.add("mb-lost");
    const health = document.querySelector(".mb-health > span");
    if (health) health.textContent = this.words.lostShort;
  }
  retry() {
    this.next = Date.now() + MB_RETRY_S * 1000;
    fetch("/healthz", { cache: "no-store" }).then((answer) => {
      // A gateway that was away for long, or has been started anew, does not know this page.
      if (answer.ok) window.socket.connected || Date.now() - this.since > 25000 ? window.location.reload() : window.socket.connect();
    }).catch(() => {});
  }
  end() {
    this.since = 0;
    if (!this.banner) return;
    this.banner.remove();
    this.banner = null;
    document.documentElement.classList.remove("mb-lost");
  }
}
window.addEventListener("beforeunload", () => { window.mbLeaving = true; });
window.addEventListener("pageshow", () => { window.mbLeaving = false; });

// An error stays long enough to be read and copied; a click removes it.
function mbSay(text, isError = false) {
  const place = document.querySelector(".mb-toasts");
  if (!place) return;
  const toast = document.createElement("div");
  toast.className = isError ? "mb-toast mb-toast-error" : "mb-toast";
  toast.textContent = text;
  toast.addEventListener("click", () => toast.remove());
  place.append(toast);
  setTimeout(() => toast.remove(), isError ? 10000 : 2500);
}

function mbWhere(query) {
  const wanted = window.location.pathname + (query ? "?" + query : "");
  if (wanted !== window.location.pathname + window.location.search) history.replaceState(history.state, "", wanted);
}

// Keys: never while somebody writes, but Escape and the palette always.
const MB_GO = { t: "/timeline", c: "/chat", a: "/tasks", r: "/runs", f: "/fleet", m: "/memory", e: "/episodes", s: "/sim" };
const MB_KEYS = new Set(["j", "k", "ArrowDown", "ArrowUp", "Enter", "[", "]", "f", "l", "+", "=", "-", "0", " ", "r", "t", "?"]);
let mbGoing = 0;
// In a layout of other letters, as the Russian one, a key is known by its place.
const MB_PLACES = { BracketLeft: "[", BracketRight: "]" };
const MB_ON_SLASH = { ".": "/", ",": "?" };
const mbKey = (event) => {
  if (event.key.length !== 1) return event.key;
  if (event.code === "Slash" && MB_ON_SLASH[event.key]) return MB_ON_SLASH[event.key];
  if (event.key.charCodeAt(0) < 128) return event.key.toLowerCase();
  return MB_PLACES[event.code] || event.code.replace(/^Key/, "").toLowerCase();
};
const mbWrites = (target) => target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName || "");

function mbMove(step) {
  const rows = [...document.querySelectorAll("[data-row]")].filter((row) => row.offsetParent !== null);
  if (!rows.length) return false;
  const at = rows.findIndex((row) => row === document.activeElement || row.contains(document.activeElement));
  const next = rows[Math.min(rows.length - 1, Math.max(0, at < 0 ? 0 : at + step))];
  (next.matches("a,button,[tabindex]") ? next : next.querySelector("a,button,[tabindex]") || next).focus();
  return true;
}

document.addEventListener("keydown", (event) => {
  const key = mbKey(event);
  if ((event.ctrlKey || event.metaKey) && !event.altKey && key === "k") {
    event.preventDefault();
    if (!document.querySelector(".mb-palette")) mbOpenPalette();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    // What lies above the screen is closed by it alone.
    if (!document.querySelector(".q-dialog, .q-menu")) emitEvent("mb_key", { key: "Escape" });
    return;
  }
  if (mbWrites(event.target) || document.querySelector(".q-dialog")) return;
  if (Date.now() - mbGoing < 1000 && MB_GO[key]) {
    mbGoing = 0;
    window.location.href = MB_GO[key];
    return;
  }
  mbGoing = 0;
  if (key === "g") {
    mbGoing = Date.now();
  } else if (key === "/") {
    const place = [...document.querySelectorAll("[data-search]")].find((one) => one.offsetParent !== null);
    event.preventDefault();
    place ? place.focus() : mbOpenPalette();
  } else if (["j", "k", "ArrowDown", "ArrowUp"].includes(key)) {
    if (mbMove(key === "j" || key === "ArrowDown" ? 1 : -1)) event.preventDefault();
  } else if (key === "Enter" || key === " ") {
    if (/^(A|BUTTON|INPUT)$/.test(event.target.tagName)) return;
    const row = event.target.closest ? event.target.closest("[data-row]") : null;
    if (row) {
      event.preventDefault();
      (key === " " ? row.querySelector("input[type=checkbox]") || row : row).click();
    }
  } else if (MB_KEYS.has(key)) {
    const row = event.target.closest ? event.target.closest("[data-row]") : null;
    emitEvent("mb_key", { key, row: row ? row.dataset.row : null });
  }
});
document.addEventListener("visibilitychange", () => {
  if (window.emitEvent) emitEvent("mb_visible", { visible: !document.hidden });
});

// A talk stays at its end while it grows, unless somebody has scrolled up to read.
function mbStick(id, force) {
  const place = getHtmlElement(id);
  if (!place) return;
  const near = place.scrollHeight - place.scrollTop - place.clientHeight < 160;
  if (force || near) place.scrollTop = place.scrollHeight;
}
function mbWatch(id) {
  const place = getHtmlElement(id);
  if (!place || place.dataset.watched) return;
  place.dataset.watched = "1";
  let stuck = true;
  place.addEventListener("scroll", () => { stuck = place.scrollHeight - place.scrollTop - place.clientHeight < 120; });
  new MutationObserver(() => { if (stuck) place.scrollTop = place.scrollHeight; }).observe(place, { childList: true, subtree: true, characterData: true });
  place.scrollTop = place.scrollHeight;
}
// A message that a link names is brought into sight.
function mbReveal(id) {
  const found = document.querySelector(`[data-message="${CSS.escape(id)}"]`);
  if (!found) return;
  found.classList.add("mb-revealed");
  setTimeout(() => found.scrollIntoView({ block: "center" }), 100);
}
function mbGrow(area) {
  area.style.height = "auto";
  area.style.height = Math.min(area.scrollHeight, 160) + "px";
}
// The text of a chosen file goes into a field, as if it had been typed.
async function mbReadFile(chosen, id) {
  const area = getHtmlElement(id);
  if (!chosen.files.length || !area) return;
  area.value = await chosen.files[0].text();
  area.dispatchEvent(new Event("input"));
}
function mbComposerKey(event, emit) {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  mbTake(event.target, emit);
}
// Each chosen file is stored at once; what is said waits for it.
async function mbAttach(chosen, store, emit) {
  const composer = chosen.closest(".mb-composer"), files = [...chosen.files];
  chosen.value = "";
  composer.dataset.busy = "";
  try {
    for (const file of files) {
      const answer = await fetch(`${store}?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });
      const told = await answer.json();
      emit(answer.ok ? told : { error: `${file.name}: ${told.detail}` });
    }
  } catch (error) {
    emit({ error: String(error) });
  }
  delete composer.dataset.busy;
}
function mbTake(area, emit) {
  const text = area.value, composer = area.closest(".mb-composer");
  if (composer.dataset.busy !== undefined || !(text.trim() || composer.querySelector(".mb-attached"))) return;
  area.value = "";
  mbGrow(area);
  emit(text);
}

// A quick typist is ahead of the palette: what is typed before it is there is kept for it, Enter as well.
let mbAhead = null;
function mbOpenPalette() {
  if (mbAhead !== null) return;
  mbAhead = { text: "", entered: false, until: setTimeout(mbForgetAhead, 10_000) };
  document.addEventListener("keydown", mbTypeAhead, true);
  emitEvent("mb_key", { key: "palette" });
}
function mbTypeAhead(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") return mbForgetAhead();
  if (event.key === "Enter") mbAhead.entered = true;
  else if (event.key.length === 1) mbAhead.text += event.key;
  else if (event.key === "Backspace") mbAhead.text = mbAhead.text.slice(0, -1);
  else return;
  event.preventDefault();
  event.stopPropagation();
}
function mbForgetAhead() {
  document.removeEventListener("keydown", mbTypeAhead, true);
  clearTimeout(mbAhead?.until);
  mbAhead = null;
}
// The dialog is drawn a little later than this is called, and takes the focus to itself while it opens.
function mbFocusPalette(id, tries = 300) {
  const line = getHtmlElement(id);
  if (line && document.activeElement !== line) line.focus();
  if (tries && document.activeElement !== line) return setTimeout(() => mbFocusPalette(id, tries - 1), 16);
  if (!line) return;
  const ahead = mbAhead;
  mbForgetAhead();
  if (!ahead?.text) return;
  line.value = ahead.text;
  line.dispatchEvent(new Event("input"));
  if (ahead.entered) mbTakeChosen(line);
}

// The command palette: moves the choice and takes it without asking the server.
function mbPaletteKey(event) {
  const rows = [...document.querySelectorAll(".mb-palette a")];
  const at = rows.findIndex((row) => row.ariaSelected === "true");
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) {
    event.preventDefault();
    const next = Math.min(rows.length - 1, Math.max(0, at + step));
    rows.forEach((row, place) => row.setAttribute("aria-selected", place === next));
    rows[next]?.scrollIntoView({ block: "nearest" });
  } else if (event.key === "Enter") {
    mbTakeChosen(event.target);
  }
}
// A quick typist is ahead of the list: nothing is taken from one of other words.
function mbTakeChosen(line, wanted = line.value.trim()) {
  const list = document.querySelector(".mb-palette [role=listbox]");
  if (!list || line.value.trim() !== wanted) return;
  if (list.dataset.wanted === wanted) list.querySelector("a[aria-selected=true]")?.click();
  else setTimeout(() => mbTakeChosen(line, wanted), 30);
}

// Results that come while a row is pressed draw it anew, and the browser makes no click of that.
let mbPressedRow = null;
document.addEventListener("pointerdown", (event) => {
  mbPressedRow = event.button === 0 ? event.target.closest?.(".mb-palette a") : null;
});
document.addEventListener("pointerup", (event) => {
  if (mbPressedRow && !mbPressedRow.isConnected && event.target.closest?.(".mb-palette")) mbPressedRow.click();
  mbPressedRow = null;
});
