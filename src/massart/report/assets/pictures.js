// The pictures: SVG in the colours of the page, one path for all marks of a kind.

function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const LARGEST = 1e300; // beyond which the width of an axis overflows

const rounded = (pixels) => Math.round(pixels * 10) / 10;

function shortNumber(value) {
  const size = Math.abs(value);
  if (size >= 1e15 || (size > 0 && size < 1e-4)) return String(Number(value.toPrecision(3))).replace("e+", "e");
  return Number(value.toPrecision(6)).toLocaleString("en-US", { maximumFractionDigits: 10 });
}

// A scale has: place(value) on a line without units, its inverse, and candidates for ticks, the roundest first.

const LINEAR = { place: (value) => value, value: (place) => place, candidates: () => [] };

// Linear near zero and logarithmic beyond the unit, so that zero and negative values have a place too.
function logarithmic(unit) {
  const multiples = (digits) => {
    const sizes = Array.from({ length: 320 }, (_, k) => digits.map((digit) => digit * unit * 10 ** k)).flat().filter(Number.isFinite);
    return [...sizes.map((size) => -size), 0, ...sizes];
  };
  return {
    place: (value) => Math.asinh(value / unit / 2),
    value: (place) => 2 * unit * Math.sinh(place),
    candidates: () => [multiples([1]), multiples([1, 2, 5])],
  };
}

function evenSteps(low, high) {
  const step = 10 ** Math.floor(Math.log10((high - low) / 4));
  const wide = [5, 2, 1].find((digit) => digit * step <= (high - low) / 4) * step;
  const first = Math.ceil(low / wide);
  return Array.from({ length: Math.floor(high / wide) - first + 1 }, (_, k) => Number(((first + k) * wide).toPrecision(12)));
}

// An axis of a range, however small: it always has ticks, and none touches another.
function axis(scale, [low, high], start, end, gap) {
  const [from, to] = [scale.place(low), scale.place(high)];
  const at = (value) => start + ((scale.place(value) - from) / (to - from)) * (end - start);
  const inside = (values) => values.filter((value) => value >= low && value <= high);
  const apart = (values) => values.sort((a, b) => Math.abs(a) - Math.abs(b)).reduce((kept, value) =>
    kept.every((other) => Math.abs(at(other) - at(value)) >= gap) ? [...kept, value] : kept, []);
  const choices = [...scale.candidates().map(inside), evenSteps(low, high)].map(apart);
  const ticks = choices.find((values) => values.length >= 4) ?? choices.reduce((a, b) => (b.length > a.length ? b : a));
  return { at, ticks, back: (pixels) => scale.value(from + ((pixels - start) / (end - start)) * (to - from)) };
}

function extent(values, scale) {
  let low = Infinity, high = -Infinity;
  for (const value of values) { low = Math.min(low, value); high = Math.max(high, value); }
  if (low > high) return [0, 1];
  const [from, to] = [scale.place(low), scale.place(high)];
  const margin = 0.04 * (to - from) || Math.abs(from) / 10 || 1;
  return [scale.value(from - margin), scale.value(to + margin)];
}

function frame(element, title, x, y, box, labels) {
  const grid = [...x.ticks.map((value) => `M${rounded(x.at(value))} ${box.top}V${box.bottom}`).slice(0, labels.upright ? 0 : undefined),
    ...y.ticks.map((value) => `M${box.left} ${rounded(y.at(value))}H${box.right}`)].join("");
  const middle = (box.top + box.bottom) / 2;
  return svg("svg", { viewBox: `0 0 ${box.width} ${box.height}`, role: "img", "aria-label": title },
    svg("path", { class: "grid", d: grid }),
    ...(x.labels ?? x.ticks.map((value) => [value, shortNumber(value)])).map(([value, text]) =>
      // The last one must not be cut.
      svg("text", { x: rounded(Math.min(x.at(value), box.width - 3.8 * text.length)), y: box.bottom + 18, "text-anchor": "middle" }, text)),
    ...y.ticks.map((value) => svg("text", { x: box.left - 8, y: rounded(y.at(value)) + 4, "text-anchor": "end" }, shortNumber(value))),
    svg("text", { class: "title", x: (box.left + box.right) / 2, y: box.height - 4, "text-anchor": "middle" }, labels.x),
    svg("text", { class: "title", transform: `translate(12 ${middle}) rotate(-90)`, "text-anchor": "middle" }, labels.y));
}

// Draws again when the room changes.
function inRoom(element, draw) {
  let width = element.clientWidth;
  new ResizeObserver(() => {
    if (Math.abs(element.clientWidth - width) > 1) { width = element.clientWidth; draw(); }
  }).observe(element);
}

function tooltip(element) {
  const box = Object.assign(document.createElement("div"), { className: "tooltip", hidden: true });
  element.append(box);
  return {
    hide: () => (box.hidden = true),
    show(lines, x, y) {
      box.replaceChildren(...lines.map((line, k) => Object.assign(document.createElement(k ? "span" : "b"), { textContent: line })));
      box.hidden = false;
      const width = element.clientWidth;
      box.style.left = `${Math.max(0, Math.min(x + 14, width - box.offsetWidth))}px`;
      box.style.top = `${y > box.offsetHeight + 20 ? y - box.offsetHeight - 12 : y + 18}px`;
    },
  };
}

function pointsPicture(store, { tones, kinds, glyphs, scale }) {
  const element = document.getElementById("points-picture");
  const title = element.getAttribute("aria-label");
  const [given, implied] = [store.columns[GIVEN], store.columns[IMPLIED]];
  const points = [...store.drawn, ...Array.from({ length: store.n - store.wrong }, (_, k) => store.wrong + k)];
  const kindOf = (i) => (kinds.length ? store.columns[KIND].text(i) : "");
  const toneOf = points.map((i) => (i >= store.wrong ? -1 : tones[kinds.indexOf(kindOf(i))] ?? 0));
  const across = (i) => (store.moved ?? implied.values)[i];
  const choice = document.getElementById("scale");
  const whole = document.getElementById("whole");
  const canvas = document.createElement("div");
  const tip = (element.replaceChildren(canvas), tooltip(element));
  let isLogarithmic = Boolean(choice && scale.compressed);
  let x, y, box, seen = [];

  function draw() {
    const width = Math.max(240, element.clientWidth), height = Math.round(Math.min(460, Math.max(280, 0.72 * width)));
    const kind = isLogarithmic ? logarithmic(scale.unit) : LINEAR;
    const inView = points.filter((i) => Math.abs(across(i)) < LARGEST && Math.abs(given.values[i]) < LARGEST);
    const [xs, ys] = [rangeOf(store.filters.get(IMPLIED)), rangeOf(store.filters.get(GIVEN))];
    const yRange = ys ?? extent(inView.map((i) => given.values[i]), kind);
    const xRange = xs ?? extent(inView.map(across), kind);
    const widest = Math.max(...axis(kind, yRange, height - 46, 10, 22).ticks.map((value) => shortNumber(value).length));
    box = { width, height, left: 34 + 7.2 * widest, right: width - 12, top: 10, bottom: height - 46 };
    x = axis(kind, xRange, box.left, box.right, 64);
    y = axis(kind, yRange, box.bottom, box.top, 22);
    const picture = frame(element, title, x, y, box, { x: store.moved ? "implied by your coefficients" : "implied by the formula", y: "given in the table" });
    const [low, high] = [Math.max(xRange[0], yRange[0]), Math.min(xRange[1], yRange[1])];
    // Straight, since both axes have the same scale.
    if (low < high) picture.append(svg("path", { class: "diagonal", d: `M${[low, high].map((v) => `${rounded(x.at(v))} ${rounded(y.at(v))}`).join("L")}` }));
    seen = [];
    const paths = new Map();
    const radius = points.length > 1500 ? 3 : points.length > 200 ? 3.6 : 4.4;
    const shapes = glyphs.map((corners) => `m${corners.map(([dx, dy], k, all) => {
      const [px, py] = k ? all[k - 1] : [0, 0];
      return `${rounded(radius * (dx - px))} ${rounded(radius * (dy - py))}`;
    }).join("l")}z`);
    points.forEach((i, place) => {
      const [px, py] = [x.at(across(i)), y.at(given.values[i])];
      if (!(px >= box.left - 1 && px <= box.right + 1 && py >= box.top - 1 && py <= box.bottom + 1)) return;
      const tone = toneOf[place], wanted = store.wanted[i] === 1;
      if (wanted) seen.push([i, px, py]);
      const name = `${tone < 0 ? "right" : `wrong tone-${tone}`}${wanted ? "" : " dim"}`;
      if (!paths.has(name)) paths.set(name, []);
      paths.get(name).push(`M${rounded(px)} ${rounded(py)}${tone < 0 ? "h0" : shapes[tone]}`);
    });
    // A few wrong rows must not hide behind the others, and many must not hide the line.
    const isFirst = (name) => (name.includes("dim") ? 0 : name.startsWith("right") === store.wrong < 200 ? 1 : 2);
    for (const [name, marks] of [...paths].sort(([a], [b]) => isFirst(a) - isFirst(b)))
      picture.append(svg("path", { class: name, d: marks.join(""), "data-marks": marks.length, ...(name.startsWith("right") && { "stroke-width": 1.7 * radius }) }));
    canvas.replaceChildren(picture);
    whole.hidden = !xs && !ys;
    tip.hide();
  }

  // Where the pointer is, in units of the picture.
  function pointer(event) {
    const area = canvas.getBoundingClientRect();
    const zoom = box.width / area.width;
    return [(event.clientX - area.left) * zoom, (event.clientY - area.top) * zoom];
  }

  function nearest([px, py]) {
    let best = null, least = 16 ** 2;
    for (const point of seen) {
      const distance = (point[1] - px) ** 2 + (point[2] - py) ** 2;
      if (distance < least) { least = distance; best = point; }
    }
    return best;
  }

  function describe(i) {
    const [, identity, , , off, ...cells] = store.columns;
    const line = (column) => `${column.name}: ${column.text(i).slice(0, 60)}`;
    const words = [line(identity), `given ${given.text(i)}`, `implied ${implied.text(i)}`];
    if (i < store.wrong) words.push(`off by ${off.text(i)}`);
    return [...words, ...cells.slice(0, 8).map(line)];
  }

  let start = null;
  const within = ([px, py]) => [Math.min(Math.max(px, box.left), box.right), Math.min(Math.max(py, box.top), box.bottom)];
  const brush = svg("rect", { class: "brush" });
  element.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "mouse" || event.button || !canvas.contains(event.target)) return;
    start = within(pointer(event));
    element.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  element.addEventListener("pointermove", (event) => {
    const here = pointer(event);
    if (start) {
      const there = within(here);
      const [left, right] = [start[0], there[0]].sort((a, b) => a - b), [top, bottom] = [start[1], there[1]].sort((a, b) => a - b);
      for (const [name, value] of Object.entries({ x: left, y: top, width: right - left, height: bottom - top })) brush.setAttribute(name, value);
      canvas.firstChild.append(brush);
      tip.hide();
      return;
    }
    const found = nearest(here);
    if (found) tip.show(describe(found[0]), found[1], found[2]);
    else tip.hide();
  });
  element.addEventListener("pointerup", (event) => {
    const here = within(pointer(event)), from = start;
    start = null;
    brush.remove();
    if (from && Math.abs(here[0] - from[0]) > 6 && Math.abs(here[1] - from[1]) > 6) {
      const range = (axis, a, b) => [axis.back(a), axis.back(b)].sort((p, q) => p - q).map((v) => String(Number(v.toPrecision(5)))).join("..");
      store.change(() => {
        store.filters.set(IMPLIED, range(x, from[0], here[0]));
        store.filters.set(GIVEN, range(y, from[1], here[1]));
        store.show = "all";
      });
    } else if (from || event.pointerType !== "mouse") {
      const found = nearest(here);
      if (!found) return;
      tip.show(describe(found[0]), found[1], found[2]);
      const identity = store.columns[IDENTITY];
      const name = identity.number ? identity.values[found[0]] : identity.text(found[0]);
      if (from) store.change(() => { store.filters.set(IDENTITY, `= ${name}`); store.show = "all"; });
    }
  });
  element.addEventListener("pointerleave", () => start || tip.hide());
  const unzoom = () => store.change(() => { store.filters.delete(IMPLIED); store.filters.delete(GIVEN); store.show = "wrong"; });
  element.addEventListener("dblclick", unzoom);
  whole.addEventListener("click", unzoom);
  if (choice) {
    choice.hidden = false;
    const mark = () => [...choice.children].forEach((b) => b.setAttribute("aria-pressed", (b.dataset.scale === "logarithmic") === isLogarithmic));
    mark();
    choice.addEventListener("click", ({ target }) => {
      if (!target.dataset.scale) return;
      isLogarithmic = target.dataset.scale === "logarithmic";
      mark();
      draw();
    });
  }
  store.follow(draw);
  inRoom(element, draw);
}

function sizesPicture(store, { start, step, toned, labels }, { tones, kinds }) {
  const element = document.getElementById("sizes-picture");
  const title = element.getAttribute("aria-label");
  const canvas = document.createElement("div");
  const tip = (element.replaceChildren(canvas), tooltip(element));
  const parts = Object.entries(toned);
  const counts = parts.reduce((sums, [, part]) => sums.map((sum, k) => sum + part[k]), parts[0][1].map(() => 0));
  const end = start + counts.length * step;
  const edge = (k) => Number((10 ** (start + k * step)).toPrecision(6));
  const condition = (k) => `± ${edge(k)}..<${edge(k + 1)}`;
  const powers = [];
  for (let k = Math.floor(start); k <= end; k++)
    for (const digit of end - start < 2.5 ? [1, 2, 5] : [1]) powers.push(k + Math.log10(digit));
  let focused = 0;

  function draw() {
    const width = Math.max(240, element.clientWidth), height = Math.round(Math.min(460, Math.max(220, 0.72 * width)));
    const most = Math.max(...counts);
    const box = { width, height, left: 34 + 7.2 * shortNumber(most).length, right: width - 12, top: 10, bottom: height - 46 };
    const x = axis(LINEAR, [start - step / 4, end + step / 4], box.left, box.right, 52);
    const gap = 52 * (end - start) / (box.right - box.left);
    const shown = powers.filter((power) => power >= start - 1e-9 && power <= end).reduce((kept, power) =>
      kept.length && power - kept.at(-1) < gap ? kept : [...kept, power], []);
    x.labels = shown.map((power) => [power, shortNumber(Number((10 ** power).toPrecision(3)))]);
    const y = axis(LINEAR, [0, most], box.bottom, box.top, 22);
    y.ticks = y.ticks.filter(Number.isInteger);
    const picture = frame(element, "", x, y, box, { x: "size of the difference", y: "rows", upright: true });
    picture.setAttribute("role", "group");
    picture.setAttribute("aria-label", title);
    const kind = kinds.length ? conditionOf(store.filters.get(KIND) ?? "", false) : null;
    const wanted = kind && new Set(tones.filter((_, code) => kind.test(kinds[code])));
    const chosen = store.filters.get(OFF);
    counts.forEach((count, k) => {
      if (!count) return;
      const [left, right] = [x.at(start + (k + 0.06) * step), x.at(start + (k + 0.94) * step)];
      const bar = svg("g", { class: "bar", role: "button", tabindex: k === focused ? 0 : -1, "data-bin": k,
        "aria-label": `${grouped(count)} rows off by ${shortNumber(edge(k))} to ${shortNumber(edge(k + 1))}`, "aria-pressed": chosen === condition(k) });
      let below = 0;
      for (const [tone, part] of parts) {
        if (!part[k]) continue;
        const dim = (chosen && chosen !== condition(k)) || (wanted && !wanted.has(Number(tone))) ? " dim" : "";
        const [top, bottom] = [y.at(below + part[k]), y.at(below)];
        bar.append(svg("rect", { class: `tone-${tone}${dim}`, x: rounded(left), width: rounded(right - left), y: rounded(top), height: Math.max(1, rounded(bottom - top)) }));
        below += part[k];
      }
      bar.append(svg("rect", { class: "catch", x: rounded(left), width: rounded(right - left), y: box.top, height: box.bottom - box.top }));
      picture.append(bar);
    });
    canvas.replaceChildren(picture);
  }

  const binOf = (target) => target.closest?.(".bar")?.dataset.bin;
  const choose = (bin) => bin !== undefined && store.toggle(OFF, condition(Number(bin)));
  const focus = () => canvas.querySelector(`[data-bin="${focused}"]`)?.focus();
  focused = counts.findIndex(Boolean);
  element.addEventListener("click", ({ target }) => choose(binOf(target)));
  element.addEventListener("keydown", (event) => {
    const bins = [...counts.keys()].filter((k) => counts[k]);
    const place = bins.indexOf(Number(binOf(event.target)));
    const moves = { ArrowRight: bins[place + 1], ArrowLeft: bins[place - 1], Home: bins[0], End: bins.at(-1) };
    if (event.key === "Enter" || event.key === " ") choose(focused);
    else if (moves[event.key] !== undefined) { focused = moves[event.key]; draw(); }
    else return;
    event.preventDefault();
    focus();
  });
  element.addEventListener("pointermove", (event) => {
    const bin = Number(binOf(event.target) ?? NaN);
    if (Number.isNaN(bin)) return tip.hide();
    const area = element.getBoundingClientRect();
    const kinds = parts.filter(([tone, part]) => part[bin] && labels[tone]).map(([tone, part]) => `${labels[tone]}: ${grouped(part[bin])}`);
    tip.show([`off by ${shortNumber(edge(bin))} to ${shortNumber(edge(bin + 1))}`, `${grouped(counts[bin])} ${counts[bin] === 1 ? "row" : "rows"}`, ...kinds],
      event.clientX - area.left, event.clientY - area.top);
  });
  element.addEventListener("pointerleave", tip.hide);
  store.follow(draw);
  inRoom(element, draw);
}
