// The page: its colours, its copy buttons, and the order in which things start.

const root = document.documentElement;
const redraw = [];

function isDark() {
  return root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function startTheme() {
  const button = document.getElementById("theme");
  const show = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Show the page in ${isDark() ? "light" : "dark"} colours`);
    redraw.forEach((render) => render());
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

// Paper is white, and narrower than the screen.
function startPrinting() {
  let theme = "";
  addEventListener("beforeprint", () => {
    theme = root.dataset.theme;
    root.dataset.theme = "light";
    root.dataset.printing = "true";
    redraw.forEach((render) => render());
  });
  addEventListener("afterprint", () => {
    root.dataset.theme = theme;
    delete root.dataset.printing;
    redraw.forEach((render) => render());
  });
}

startTheme();
startCopying();
startPrinting();
try {
  const rows = embedded("table-data");
  if (rows) await startTable(rows);
  const points = embedded("points-data");
  if (points) {
    await loadPlotly();
    redraw.push(await pointsPicture(points));
    if (document.getElementById("sizes-picture")) redraw.push(sizesPicture(embedded("sizes-data")));
    await Promise.all(redraw.map((render) => render()));
  }
  root.dataset.ready = "true";
} catch (error) {
  root.dataset.ready = "failed";
  for (const picture of document.querySelectorAll(".picture:empty")) picture.textContent = "This browser cannot draw the picture.";
  throw error;
}
