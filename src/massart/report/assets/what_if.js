// What if a coefficient were another one: counts the rows that would agree, as massart.agreement does.

// Sums and products with what rounding loses of them (Knuth, Dekker).
function twoSum(a, b) {
  const total = a + b, other = total - a;
  return [total, a - (total - other) + (b - other)];
}

function halves(x) {
  const scaled = 134217729 * x, high = scaled - (scaled - x);
  return [high, x - high];
}

function twoProduct(x, c) {
  const product = x * c, [xHigh, xLow] = halves(x), [cHigh, cLow] = halves(c);
  return [product, xHigh * cHigh - product + xHigh * cLow + xLow * cHigh + xLow * cLow];
}

// What coefficients imply for a row with these values, and whether a label agrees with that.
function compare(values, coef, label, rule) {
  let high = 0, low = 0, size = Math.abs(label), lost, rest, product;
  values.forEach((x, j) => {
    if (!coef[j]) return;
    [product, rest] = twoProduct(x, coef[j]);
    [high, lost] = twoSum(high, product);
    low += lost + rest;
    size += Math.abs(product);
  });
  [high, low] = twoSum(high, low);
  const [lower, upper, slope] = rule.link;
  const inside = Math.min(Math.max(high, lower ?? -Infinity), upper ?? Infinity);
  const implied = inside + (slope ? slope * (high - inside) : 0);
  const residual = label - implied - (inside === high ? 1 : slope) * low;
  const slack = rule.inputs.reduce((sum, width, j) => sum + Math.abs(coef[j]) * width, rule.label);
  const arithmetic = rule.unit === null ? rule.relative * size : Math.min(rule.relative * size, Math.max(rule.tight * size, rule.unit / 4));
  return { implied, agrees: Math.abs(residual) <= Math.max(1, slope) * (slack * (1 + rule.edge) + arithmetic) };
}

async function startWhatIf(store, rule) {
  const picture = [...store.drawn, ...Array.from({ length: store.n - store.wrong }, (_, k) => store.wrong + k)];
  const rows = picture.filter((_, k) => k % rule.stride === 0);
  const given = store.columns[GIVEN].values;
  const terms = await Promise.all(rule.terms.map(async (term) => {
    if (term.constant) return Float64Array.from(rows, () => 1);
    if (term.column) return Float64Array.from(rows, (i) => store.columns[term.column + 1].values[i]);
    return (await unpackColumn(term)).values;
  }));
  const panel = document.getElementById("what-if");
  const inputs = [...document.querySelectorAll("input[data-term]")];
  const drops = [...document.querySelectorAll("button[data-drop]")];
  const written = inputs.map((input) => input.value);

  // The coefficient itself where nothing was typed: what is shown may be rounded.
  function coefOf(place) {
    const text = inputs[place].value.trim();
    if (text === written[place]) return rule.coef[place];
    const [over, under = "1"] = text.split("/");
    return text === "" ? 0 : numberOf(over) / numberOf(under);
  }

  function recount() {
    const coef = inputs.map((_, place) => coefOf(place));
    inputs.forEach((input, place) => input.setAttribute("aria-invalid", !Number.isFinite(coef[place])));
    drops.forEach((button, place) => button.setAttribute("aria-pressed", coef[place] === 0 && rule.coef[place] !== 0));
    if (!coef.every(Number.isFinite)) return;
    const changed = coef.some((value, place) => value !== rule.coef[place]);
    const moved = new Float64Array(store.n).fill(NaN);
    const agree = { right: 0, wrong: 0 }, all = { right: 0, wrong: 0 };
    rows.forEach((i, k) => {
      const found = compare(terms.map((values) => values[k]), coef, given[i], rule);
      const side = i < store.wrong ? "wrong" : "right";
      moved[i] = found.implied;
      all[side] += 1;
      agree[side] += found.agrees;
    });
    for (const side of ["right", "wrong"]) panel.querySelector(`[data-${side}]`).textContent = `${grouped(agree[side])} of ${grouped(all[side])}`;
    panel.classList.toggle("changed", changed);
    document.getElementById("restore").disabled = !changed;
    if (changed || store.moved) store.change(() => (store.moved = changed ? moved : null));
  }

  inputs.forEach((input) => input.addEventListener("input", recount));
  drops.forEach((button, place) => button.addEventListener("click", () => {
    inputs[place].value = button.getAttribute("aria-pressed") === "true" ? written[place] : "0";
    recount();
  }));
  document.getElementById("restore").addEventListener("click", () => {
    inputs.forEach((input, place) => (input.value = written[place]));
    recount();
  });
  recount();
  for (const element of [panel, ...document.querySelectorAll(".coefficients .if")]) element.hidden = false;
}
