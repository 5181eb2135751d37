// Adds up what the filters leave, and draws it. All names are set as text, never as markup; molecules are images.

const content = JSON.parse(find("content").textContent);
const [TITLE, TARGET, OUTPUT, RIGHT, SIZE, PARTS, REST] = [0, 1, 2, 3, 4, 5, 6];
const ADD_UP = content.rows.every((row) => row[REST] !== null); // else scores are no parts of the output
const SHOWN = 15, FIRST = 12, LISTED = 200, DOTS = 1500;
const whole = new Set(); // the tables that are shown in full
let drawings = { rows: [], names: {} }; // molecules as SVG, once they are unpacked
let picked = null; // the name whose predictions are listed, with its section

function make(kind, text, attributes = {}) {
  const made = document.createElement(kind);
  if (text !== null) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function shape(kind, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// A molecule as a small picture with its name, or only the name where there is no picture.
function drawn(svg, name) {
  if (!svg) return make("span", name);
  return make("img", null, { class: "molecule", alt: name, title: name, src: `data:image/svg+xml,${encodeURIComponent(svg)}` });
}

// Signed numbers with the decimals that the largest of them deserves.
function alike(values) {
  const most = Math.max(...values.map(Math.abs), 1e-12);
  const decimals = Math.min(12, Math.max(0, 2 - Math.floor(Math.log10(most))));
  return values.map((value) => {
    const text = Math.abs(value).toFixed(decimals);
    return Number(text) === 0 ? text : (value < 0 ? "−" : "+") + text;
  });
}

function kept() {
  const [target, right] = [find("class").value, find("right").value];
  const [least, most] = ["least", "most"].map((id) => (find(id).value === "" ? null : Number(find(id).value)));
  return content.rows.map((row) =>
    (target === "" || row[TARGET] === Number(target)) && (right === "" || row[RIGHT] === (right === "true")) &&
    (least === null || row[SIZE] >= least) && (most === null || row[SIZE] <= most));
}

// What the filters leave of a section: names with their occurrences, the largest sums by magnitude first.
function left(section, rows) {
  const found = section.names.map(([name, all]) => {
    const occurrences = all.filter(([row]) => rows[row]);
    const scores = occurrences.map(([, score]) => score);
    const count = scores.length, mean = scores.reduce((a, b) => a + b, 0) / Math.max(count, 1);
    const spread = Math.sqrt(scores.reduce((a, b) => a + (b - mean) ** 2, 0) / Math.max(count - 1, 1));
    const inside = new Set(occurrences.map(([row]) => row));
    return { name, occurrences, count, mean, spread, inside, weight: scores.reduce((a, b) => a + Math.abs(b), 0) };
  });
  return found.filter((one) => one.count).sort((p, q) => q.weight - p.weight);
}

function colour(score, end) {
  const place = Math.round((0.5 + score / end / 2) * (content.scale.length - 1));
  return content.scale[Math.max(0, Math.min(content.scale.length - 1, place))];
}

function swarm(found) {
  const shown = found.slice(0, SHOWN), high = 40, narrow = window.innerWidth < 700;
  const [from, to, width, letters] = narrow ? [104, 330, 430, 15] : [190, 790, 940, 26];
  const scores = shown.flatMap((one) => one.occurrences.map(([, score]) => score));
  const end = Math.max(...scores.map(Math.abs), 1e-12);
  const [low, top] = [Math.min(0, ...scores), Math.max(0, ...scores)];
  const across = (score) => from + ((score - low) / Math.max(top - low, 1e-12)) * (to - from);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${shown.length * high + 26}`, class: "swarm", role: "img" });
  svg.setAttribute("aria-label", `What each kind contributes, from ${low.toPrecision(3)} to ${top.toPrecision(3)}`);
  svg.append(shape("line", { x1: across(0), x2: across(0), y1: 0, y2: shown.length * high, stroke: "#8c8c8c" }));
  const means = alike([...shown.map((one) => one.mean), end]);
  shown.forEach((one, number) => {
    const y = number * high + high / 2, bins = new Map();
    const step = Math.max(1, Math.ceil(one.count / DOTS));
    const dots = one.occurrences.filter((_, at) => at % step === 0);
    for (const [row, score, size] of dots) {
      const bin = Math.round(across(score) / 6);
      bins.set(bin, [...(bins.get(bin) || []), [row, score, size]]);
    }
    const crowd = Math.max(...[...bins.values()].map((dotsOfBin) => dotsOfBin.length));
    const gap = Math.min(5, (high - 8) / crowd);
    for (const stacked of bins.values()) {
      stacked.forEach(([row, score, size], at) => {
        const dot = shape("circle", {
          cx: across(score), cy: y + (at - (stacked.length - 1) / 2) * gap, r: 3, fill: colour(score, end), stroke: "#8c8c8c",
          "stroke-width": 0.4,
        });
        dot.append(shape("title", {}, `${content.rows[row][TITLE]}: ${score.toPrecision(3)} from ${size}`));
        svg.append(dot);
      });
    }
    svg.append(shape("line", {
      x1: across(one.mean), x2: across(one.mean), y1: y - 15, y2: y + 15, stroke: "#222", "stroke-width": 2,
    }));
    const name = one.name.length > letters ? `${one.name.slice(0, letters - 1)}…` : one.name;
    svg.append(shape("text", { x: from - 8, y: y + 4, "text-anchor": "end", "font-size": 13, fill: "#222" }, name));
    svg.append(shape("text", { x: to + 10, y: y + 4, "font-size": 12, fill: "#222" }, `${means[number]} (${one.inside.size})`));
  });
  const ends = [[low, "start"], [top, "end"]].filter(([value]) => Math.abs(across(value) - across(0)) > 64); // else upon the 0
  for (const [value, anchor] of [...ends, [0, "middle"]]) {
    const at = { x: across(value), y: shown.length * high + 16, "text-anchor": anchor, "font-size": 12, fill: "#555" };
    svg.append(shape("text", at, value === 0 ? "0" : alike([value])[0]));
  }
  svg.append(shape("text", { x: to + 30, y: shown.length * high + 16, "font-size": 12, fill: "#555" }, narrow ? "mean (n)" : "mean (predictions)"));
  return svg;
}

function table(section, found, total) {
  const made = make("table", null), head = made.createTHead().insertRow();
  for (const [text, style] of [["name", "name"], ["mean", "number"], ["± spread", "number spread"], ["predictions", "number"], ["times", "number times"], ["examples", "examples"]]) {
    head.append(make("th", text, { scope: "col", class: style }));
  }
  const body = made.createTBody(), listed = found.slice(0, whole.has(section.key) ? LISTED : FIRST);
  const means = alike([...listed.map((one) => one.mean), ...listed.map((one) => one.spread)]);
  listed.forEach((one, number) => {
    const row = body.insertRow(), name = make("th", null, { scope: "row", class: "name" });
    const pressed = picked && picked.key === section.key && picked.name === one.name;
    const button = make("button", one.name, { type: "button", class: "pick", "aria-pressed": String(Boolean(pressed)) });
    button.addEventListener("click", () => {
      picked = pressed ? null : { key: section.key, name: one.name };
      show();
      if (picked) find("predictions").scrollIntoView({ block: "nearest" });
    });
    name.append(button);
    if (section.key === "subgraphs" && drawings.names[one.name]) name.append(drawn(drawings.names[one.name], one.name));
    row.append(name);
    const spread = one.count > 1 ? means[listed.length + number].replace("+", "") : "–";
    for (const [text, style] of [[means[number], ""], [spread, "spread"], [`${one.inside.size} of ${total}`, ""], [String(one.count), "times"]]) {
      row.append(make("td", text, { class: `number ${style}` }));
    }
    const examples = row.appendChild(make("td", null, { class: "examples name" }));
    for (const at of [...one.inside].slice(0, 3)) examples.append(drawn(drawings.rows[at], content.rows[at][TITLE]), " ");
  });
  const scroll = make("div", null, { class: "scroll" });
  scroll.append(made);
  return scroll;
}

// A button that shows more of a table, or less again.
function more(key, count) {
  const most = Math.min(count, LISTED);
  const text = whole.has(key) ? `Show the first ${FIRST}` : `Show ${most < count ? `the first ${most}` : "all"} of ${count}`;
  const button = make("button", text, { type: "button", class: "more" });
  button.addEventListener("click", () => {
    if (!whole.delete(key)) whole.add(key);
    show();
  });
  return button;
}

function predictions(rows) {
  const section = picked && content.sections.find((one) => one.key === picked.key);
  const named = section && section.names.find(([name]) => name === picked.name);
  const sums = new Map();
  for (const [row, score] of named ? named[1] : []) sums.set(row, (sums.get(row) || 0) + score);
  const order = content.rows.map((_, at) => at).filter((at) => rows[at] && (!named || sums.has(at)));
  if (named) order.sort((p, q) => Math.abs(sums.get(q)) - Math.abs(sums.get(p)));
  find("chosen").textContent = named ? `With ${picked.name}, the largest contributions first; press it again to see all.` : "";
  const [head, body] = [document.querySelector("#predictions thead"), document.querySelector("#predictions tbody")];
  const several = Object.keys(content.classes).length > 1;
  const known = content.rows.some((row) => row[RIGHT] !== null);
  const heads = ["prediction", ...(several ? ["explained class"] : []), "output", ...(ADD_UP ? [content.single, "rest"] : []), ...(named ? ["its contribution"] : []), ...(known ? ["is"] : []), content.nodes];
  const line = make("tr", null);
  for (const text of heads) line.append(make("th", text, { scope: "col", class: text === "prediction" ? "name" : "number" }));
  head.replaceChildren(line);
  const shown = order.slice(0, whole.has("predictions") ? LISTED : FIRST), columns = ADD_UP ? [OUTPUT, PARTS, REST] : [OUTPUT];
  const outputs = alike(shown.flatMap((at) => columns.map((column) => content.rows[at][column])));
  const parts = named ? alike(shown.map((at) => sums.get(at))) : [];
  body.replaceChildren(...shown.map((at, number) => {
    const row = content.rows[at], right = row[RIGHT] === null ? "–" : row[RIGHT] ? "right" : "wrong";
    const first = several ? [content.classes[row[TARGET]]] : [];
    const values = outputs.slice(number * columns.length, (number + 1) * columns.length);
    const cells = [...first, ...values, ...(named ? [parts[number]] : []), ...(known ? [right] : []), String(row[SIZE])];
    const made = make("tr", null);
    const name = made.appendChild(make("th", drawings.rows[at] ? row[TITLE] : null, { scope: "row", class: "name" }));
    name.append(drawn(drawings.rows[at], row[TITLE]));
    for (const text of cells) made.append(make("td", text, { class: "number" }));
    return made;
  }));
  find("more").replaceChildren(...(order.length > FIRST ? [more("predictions", order.length)] : []));
}

// What single scores add up to, the prediction, and the rest, on average over the predictions that are left.
function account(rows) {
  if (!ADD_UP || !rows.length) return "";
  const mean = (value) => rows.reduce((sum, row) => sum + value(row), 0) / rows.length;
  const values = [(row) => row[PARTS], (row) => row[PARTS] + row[REST], (row) => row[REST], (row) => Math.abs(row[REST])];
  const [parts, whole, rest, size] = alike(values.map(mean)); // opposite signs would hide how large the rest is
  return `On average ${content.single} add up to ${parts}, the prediction is ${whole}, the rest (joint effects and biases) is ${rest}, by magnitude ${size.replace("+", "")}.`;
}

function show() {
  const rows = kept(), total = rows.filter(Boolean).length;
  find("count").textContent = `${total} of ${rows.length} predictions. ${account(content.rows.filter((_, at) => rows[at]))}`;
  find("sections").replaceChildren(...content.sections.map((section) => {
    const made = make("section", null, { id: section.key }), found = left(section, rows);
    made.append(make("h2", section.title), make("p", section.note, { class: "note" }));
    if (!found.length) made.append(make("p", "None in these predictions.", { class: "note" }));
    else {
      if (section.key === "kinds") made.append(swarm(found));
      made.append(table(section, found, total));
      if (found.length > FIRST) made.append(more(section.key, found.length));
    }
    return made;
  }));
  predictions(rows);
}

for (const [value, name] of Object.entries(content.classes)) find("class").append(make("option", name, { value }));
if (content.rows.every((row) => row[RIGHT] === null)) find("right").parentElement.hidden = true;
if (Object.keys(content.classes).length < 2) find("class").parentElement.hidden = true;
for (const id of ["class", "right", "least", "most"]) find(id).addEventListener("input", show);
find("reset").addEventListener("click", () => {
  for (const id of ["class", "right", "least", "most"]) find(id).value = "";
  picked = null;
  show();
});
let narrow = window.innerWidth < 700;
window.addEventListener("resize", () => {
  if (window.innerWidth < 700 === narrow) return;
  narrow = !narrow;
  show();
});
show();
// Browsers of before 2023 cannot unpack: they have the names.
unpacked("drawings").then((text) => { drawings = JSON.parse(text); show(); }).catch(() => {}).finally(() => { document.body.dataset.ready = "yes"; });
