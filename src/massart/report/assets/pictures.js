// The pictures: drawn by Plotly in the colours of the page.

async function loadPlotly() {
  const script = document.createElement("script");
  script.textContent = new TextDecoder().decode(await inflate(document.getElementById("plotly").textContent));
  document.head.append(script);
  if (!window.Plotly) throw new Error("Plotly did not start");
}

// Plotly reads <b>, <a> and <br> in texts; what comes from the table must not be read.
function asText(text) {
  const short = text.length > 60 ? `${text.slice(0, 60)}…` : text;
  return short.replace(/[\r\n\t]+/g, " ").replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function colour(name) {
  const probe = document.createElement("i");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

function layout(height) {
  const axis = () => ({
    gridcolor: colour("grid"), zerolinecolor: colour("line"), linecolor: colour("line"), tickcolor: colour("line"),
    automargin: true, title: { standoff: 10, font: { size: 13 } }, separatethousands: true, exponentformat: "e", minexponent: 12,
  });
  return {
    height, autosize: true, margin: { l: 8, r: 8, t: 8, b: 8 }, showlegend: false, hovermode: "closest",
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: colour("soft") },
    hoverlabel: { bgcolor: colour("paper"), bordercolor: colour("soft"), align: "left", font: { size: 13, color: colour("ink") } },
    xaxis: axis(), yaxis: axis(),
  };
}

function draw(id, traces, shape) {
  const element = document.getElementById(id);
  shape.height = element.clientHeight;
  if (document.documentElement.dataset.printing) Object.assign(shape, { autosize: false, width: 640 });
  return Plotly.react(element, traces, shape, { displayModeBar: false, responsive: true, scrollZoom: false });
}

// Linear near zero and logarithmic beyond the unit, so that zero and negative values have a place too.
function compressed(unit) {
  const compress = (value) => Math.asinh(value / unit / 2) / Math.LN10;
  return { compress, ticks: (values) => {
    let low = Infinity, high = -Infinity;
    for (const value of values) { low = Math.min(low, compress(value)); high = Math.max(high, compress(value)); }
    const powers = Math.max(1, Math.ceil(Math.max(high, -low)));
    const digits = high - low < 3 ? [1, 2, 5] : [1];
    const sizes = Array.from({ length: powers + 1 }, (_, k) => digits.map((digit) => digit * unit * 10 ** k)).flat();
    const every = Math.ceil(powers / 8);
    const kept = digits.length > 1 ? sizes : sizes.filter((_, k) => k % every === 0);
    const chosen = [...kept.map((size) => -size), 0, ...kept].filter((value) => {
      const at = compress(value);
      return at > low - 0.3 && at < high + 0.3 && (value === 0 || low > 0 || Math.abs(at) > (high - low) / 14);
    });
    return { tickmode: "array", tickvals: chosen.map(compress), ticktext: chosen.map(shortNumber), zeroline: true };
  } };
}

function shortNumber(value) {
  const size = Math.abs(value);
  if (size >= 1e15 || (size > 0 && size < 1e-4)) return value.toExponential(0).replace("e+", "e");
  return Number(value.toPrecision(6)).toLocaleString("en-US", { maximumFractionDigits: 10 });
}

// As the marks in kinds.py.
const SYMBOLS = ["diamond", "square", "triangle-up", "cross", "x", "triangle-down", "pentagon", "star"];

async function pointsPicture(packed) {
  const [given, implied, ...cells] = await Promise.all(packed.columns.map((c) => unpackColumn(c, packed.n)));
  const { places } = packed;
  const codes = packed.codes;
  const kindOf = (i) => [packed.kinds[codes[i - packed.right]]].filter(Boolean).map(asText);
  const hover = Array.from({ length: packed.n }, (_, i) => {
    const rows = cells.map((cell) => `${asText(cell.name)}: ${asText(cell.text(i))}`);
    if (rows.length) rows[0] = `<b>${rows[0]}</b>`;
    const off = writeNumber(given.values[i] - implied.values[i], places, true);
    const words = [`given ${given.text(i)}`, `implied ${implied.text(i)}`];
    if (i >= packed.right) words.push(`off by ${off}`, ...kindOf(i));
    return [...rows.slice(0, 1), ...words, ...rows.slice(1)].join("<br>");
  });
  const choice = document.getElementById("scale");
  let scale = choice && packed.compressed ? "compressed" : "linear";

  function render() {
    const { compress, ticks } = compressed(packed.unit);
    const place = scale === "linear" ? (value) => value : compress;
    const x = Array.from(implied.values, place), y = Array.from(given.values, place);
    let low = Infinity, high = -Infinity;
    for (const value of implied.values) { low = Math.min(low, value); high = Math.max(high, value); }
    const shape = layout();
    shape.xaxis.title.text = "implied by the formula";
    shape.yaxis.title.text = "given in the table";
    if (scale !== "linear")
      for (const [axis, values] of [[shape.xaxis, implied.values], [shape.yaxis, given.values]])
        Object.assign(axis, ticks(values));
    const points = (start, end, marker) => ({
      type: "scatter", mode: "markers", x: x.slice(start, end), y: y.slice(start, end), marker,
      hovertext: hover.slice(start, end), hoverinfo: "text",
    });
    const size = (number) => (number > 1000 ? 5 : number > 100 ? 7 : 9);
    const wrong = packed.n - packed.right;
    const line = {
      type: "scatter", mode: "lines", x: [place(low), place(high)], y: [place(low), place(high)],
      line: { color: colour("soft"), width: 1, dash: "dot" }, hoverinfo: "skip",
    };
    const rightOnes = points(0, packed.right, {
      color: colour("right"), symbol: "circle", size: size(packed.right) - 1, opacity: packed.right > 500 ? 0.6 : 0.85,
    });
    const colours = packed.tones.map((tone) => colour(`tone-${tone}`));
    const wrongOnes = points(packed.right, packed.n, {
      color: codes.map((code) => colours[code]), symbol: codes.map((code) => SYMBOLS[packed.tones[code]]),
      size: size(wrong), opacity: wrong > 500 ? 0.55 : 0.85,
    });
    // A few wrong rows must not hide behind the others, and many must not hide the line.
    return draw("points-picture", wrong < 200 ? [line, rightOnes, wrongOnes] : [line, wrongOnes, rightOnes], shape);
  }

  if (choice) {
    choice.hidden = false;
    const mark = () => [...choice.children].forEach((b) => b.setAttribute("aria-pressed", b.dataset.scale === scale));
    mark();
    choice.addEventListener("click", ({ target }) => {
      if (!target.dataset.scale) return;
      scale = target.dataset.scale;
      mark();
      render();
    });
  }
  return render;
}

function sizesPicture({ start, step, toned, labels, off }) {
  const parts = Object.entries(toned);
  const counts = parts.reduce((sums, [, part]) => sums.map((sum, k) => sum + part[k]), parts[0][1].map(() => 0));
  const edge = (k) => 10 ** (start + k * step);
  const middles = counts.map((_, k) => start + (k + 0.5) * step);
  const hover = (part, label) => part.map((count, k) =>
    `${label ? `<b>${asText(label)}</b><br>` : ""}${count.toLocaleString("en-US")} ${count === 1 ? "row" : "rows"}<br>off by ${shortNumber(Number(edge(k).toPrecision(3)))} to ${shortNumber(Number(edge(k + 1).toPrecision(3)))}`);
  const end = start + counts.length * step;
  const ticks = [];
  const fine = end - start < 2.5 ? [1, 2, 5] : [1];
  const every = Math.max(1, Math.ceil((end - start) / 9));
  for (let k = Math.floor(start); k <= end; k++)
    for (const digit of fine) if (k % every === 0 && k + Math.log10(digit) >= start - 1e-9) ticks.push([k, digit]);
  return () => {
    const shape = layout();
    shape.bargap = 0.08;
    Object.assign(shape.xaxis, {
      showgrid: false, zeroline: false, range: [start - step / 2, end + step / 2],
      tickmode: "array", tickvals: ticks.map(([k, digit]) => k + Math.log10(digit)), ticktext: ticks.map(([k, digit]) => shortNumber(digit * 10 ** k)),
    });
    shape.xaxis.title.text = "size of the difference";
    shape.yaxis.title.text = off === "wrong rows" ? off : "rows";
    if (Math.max(...counts) < 6) shape.yaxis.dtick = 1;
    shape.dragmode = false;
    shape.xaxis.fixedrange = shape.yaxis.fixedrange = true;
    shape.barmode = "stack";
    return draw("sizes-picture", parts.map(([tone, part]) => ({
      type: "bar", x: middles, y: part, width: step * 0.92, marker: { color: colour(`tone-${tone}`) },
      hovertext: hover(part, labels[tone]), hoverinfo: "text", textposition: "none",
    })), shape);
  };
}
