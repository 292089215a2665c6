// The page: its colours, its copy buttons, and the order in which things start.

const root = document.documentElement;

function isDark() {
  return root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function startTheme() {
  const button = document.getElementById("theme");
  const show = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Show the page in ${isDark() ? "light" : "dark"} colours`);
  };
  // Storage may be forbidden for a page opened from a file.
  try { root.dataset.theme = localStorage.getItem("massart-theme") ?? ""; } catch { root.dataset.theme = ""; }
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("massart-theme", root.dataset.theme); } catch { /* it is forgotten */ }
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  show();
  button.hidden = false;
}

function startCopying() {
  for (const button of document.querySelectorAll("[data-copy]")) {
    const before = [...button.childNodes];
    button.hidden = false;
    button.addEventListener("click", async () => {
      const text = document.getElementById(button.dataset.copy).textContent;
      const done = await copyText(text);
      button.textContent = done ? "Copied" : "Press Ctrl+C";
      setTimeout(() => button.replaceChildren(...before), 2000);
    });
  }
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = Object.assign(document.createElement("textarea"), { value: text });
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

// Paper has no buttons: what is folded is opened, and headers are texts, since those with buttons are not repeated.
function startPrinting() {
  let folded = [], headers = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    headers = [...document.querySelectorAll("thead button")].map((button) => [button, new Text(button.textContent)]);
    folded.forEach((part) => (part.open = true));
    headers.forEach(([button, text]) => button.replaceWith(text));
  });
  addEventListener("afterprint", () => {
    folded.forEach((part) => (part.open = false));
    headers.forEach(([button, text]) => text.replaceWith(button));
  });
}

startTheme();
startCopying();
startPrinting();
document.querySelectorAll(".scroll").forEach(hintAtMore);
try {
  const packed = embedded("rows-data");
  if (packed) {
    const store = await openRows(packed);
    startChips(store);
    startLists(store);
    if (document.getElementById("table")) startTable(store);
    const points = embedded("points-data");
    pointsPicture(store, points);
    if (document.getElementById("sizes-picture")) sizesPicture(store, embedded("sizes-data"), points);
    const rule = embedded("what-if-data");
    if (rule) await startWhatIf(store, rule);
    store.change();
  }
  root.dataset.ready = "true";
} catch (error) {
  root.dataset.ready = "failed";
  throw error;
}
