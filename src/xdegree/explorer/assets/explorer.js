/* What must happen at once happens here: who is in which group, and what the drawing looks like. Numbers come from
   the server. Names are drawn on a canvas or set as text, never as markup. */
(function () {
  "use strict";
  const same = (p, q) => p.length === q.length && p.every((node) => q.includes(node));
  const skip = () => window.dash_clientside.no_update;
  const signed = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toPrecision(3);

  /* What fired: several at once when the browser is busy. */
  function trigger() {
    const fired = (window.dash_clientside.callback_context.triggered || []).map((one) => one.prop_id);
    return (...names) => fired.some((id) => names.some((name) => id.startsWith(name)));
  }

  function library() {
    const found = [...document.querySelectorAll("#graph, #graph *")].find((element) => element._cyreg);
    return found ? found._cyreg.cy : null;
  }

  /* A click adds to the selection instead of starting a new one; dash-cytoscape has no property for that. */
  function additive() {
    if (library()) library().selectionType("additive");
  }

  function selected() {
    return library() ? library().nodes(":selected").map((node) => node.data()) : null;
  }

  /* One node goes into a group or out of it; a node is never in both groups. */
  function toggled(groups, active, node) {
    const inside = groups[active].includes(node);
    groups[active] = inside ? groups[active].filter((n) => n !== node) : [...groups[active], node];
    groups[1 - active] = groups[1 - active].filter((n) => n !== node);
    return groups;
  }

  function groups(tap, tapSecond, boxed, clear, drawing, a, b, into) {
    const before = [a || [], b || []];
    const active = into === "b" ? 1 : 0;
    const fired = trigger();
    const tapped = fired("graph.tap") ? tap : fired("second.tap") ? tapSecond : null;
    let after = before.map((group) => [...group]);
    if (fired("clear", "drawing")) {
      after = [[], []];
    } else if (fired("graph.") && drawing) {
      /* What is selected now, not what was told: of several quick clicks only the last may be told, and late. */
      const chosen = selected() || (boxed || []);
      const other = new Set(fired("graph.selected") ? [] : after[1 - active]);
      if (tapped) other.delete(tapped.node);
      after[active] = chosen.filter((d) => d.key === drawing.key && !other.has(d.node)).map((d) => d.node);
      after[1 - active] = after[1 - active].filter((n) => !after[active].includes(n));
    } else if (tapped && drawing && tapped.key === drawing.key) {
      after = toggled(after, active, tapped.node);
    } else if (fired("group-a")) {
      after[1] = after[1].filter((n) => !after[0].includes(n));
    } else if (fired("group-b")) {
      after[0] = after[0].filter((n) => !after[1].includes(n));
    }
    return after.map((group, i) => (same(group, before[i]) ? skip() : group));
  }

  function edges(drawing, owner) {
    const found = [];
    for (const edge of drawing.edges) {
      const ends = { source: `${drawing.key}-${edge.u}`, target: `${drawing.key}-${edge.v}` };
      const inside = owner && owner[edge.u] >= 0 && owner[edge.u] === owner[edge.v];
      const order = inside ? 1 : edge.order;
      const id = `${ends.source}-${edge.v}`;
      const classes = `order${order}` + (edge.arc ? " arc" : "") + (edge.far ? " far" : "") + (inside ? " inside" : "");
      found.push({ data: { id, ...ends, arc: -2 * edge.arc }, classes });
      /* A white line upon a wide one makes two, a dark one upon that makes three. */
      if (order > 1) found.push({ data: { id: `${id}-gap`, ...ends }, classes: `gap${order}` });
      if (order > 2) found.push({ data: { id: `${id}-core`, ...ends }, classes: "core" });
    }
    return found;
  }

  /* The elements of a drawing under a layer of colours; groups are marked, and those of the active one selected. */
  function elements(drawing, layer, a, b, active) {
    const marks = [new Set(a || []), new Set(b || [])];
    const owner = layer.groups ? {} : null;
    const nodes = drawing.nodes.map((node, i) => {
      const mark = marks[0].has(node.node) ? " in-a" : marks[1].has(node.node) ? " in-b" : "";
      const alone = layer.groups && layer.groups[i] < 0;
      if (owner) owner[node.node] = layer.groups[i];
      return {
        data: {
          id: `${drawing.key}-${node.node}`, key: drawing.key, node: node.node, label: node.label, name: node.name,
          width: node.width, height: node.height, colour: layer.colours[i], ink: layer.inks[i],
          score: alone ? null : layer.scores[i],
        },
        position: { x: node.x, y: node.y },
        classes: node.classes.join(" ") + mark + (alone ? " alone" : ""),
        selected: active === null ? false : marks[active].has(node.node),
      };
    });
    return [...nodes, ...edges(drawing, owner)];
  }

  function chosenLayer(drawing, view, target, growth, level, first) {
    const fits = (found) => found && found.key === drawing.key && found.target === target;
    if (view === "growth" && fits(growth)) {
      const at = Math.min(Math.max(Number(level) || 0, 0), growth.levels.length - 1);
      return { ...growth.levels[at], most: growth.most, caption: `what each group contributes to ${growth.name}` };
    }
    if (view === "compare" && fits(first)) return first;
    return { ...drawing.layers[target], caption: drawing.captions[target] };
  }

  function draw(drawing, view, target, growth, level, first, a, b, into) {
    if (!drawing || target === null || !drawing.layers[target]) return [skip(), skip(), skip(), skip()];
    additive();
    const layer = chosenLayer(drawing, view, target, growth, level, first);
    const shown = elements(drawing, layer, a, b, into === "b" ? 1 : 0);
    return [shown, signed(-layer.most), signed(layer.most), layer.caption];
  }

  function drawSecond(drawing, view, target, second, a, b) {
    if (view !== "compare") return [skip(), skip(), skip(), skip()];
    const fits = drawing && second && second.key === drawing.key && second.target === target;
    if (!fits) return [[], "", "", ""];
    return [elements(drawing, second, a, b, null), signed(-second.most), signed(second.most), second.caption];
  }

  function views(view, drawing) {
    const kind = drawing ? drawing.kind : "";
    return ["growth", "compare"].map((name) => name !== view).concat(`stage ${view} ${kind}`);
  }

  function hover(over, drawing) {
    if (over && (!drawing || over.key !== drawing.key)) return "";
    if (!over || over.score === null || over.score === undefined) return over ? over.name : "";
    return `${over.name}: ${signed(over.score)}`;
  }

  function panning(drag) {
    return drag === "move";
  }

  /* Steps of the play button: on to the next level, and an end at the last one. */
  function play(clicks, ticks, growth, view, level, stopped) {
    const last = growth ? growth.levels.length - 1 : 0;
    const at = Number(level) || 0;
    const fired = trigger();
    if (view !== "growth" || !growth) return [true, skip(), "Play"];
    if (fired("growth.data")) return [true, 0, "Play"];
    if (fired("play.")) {
      return stopped ? [false, at >= last ? 0 : skip(), "Pause"] : [true, skip(), "Play"];
    }
    if (stopped) return [skip(), skip(), skip()];
    return at + 1 >= last ? [true, last, "Play"] : [skip(), at + 1, skip()];
  }

  function picture(clicks) {
    if (!clicks) return skip();
    return { type: "png", action: "download", filename: "xdegree", options: { bg: "#ffffff", scale: 3, full: true } };
  }

  /* A file that is too large is not even sent. */
  function upload(contents, name, most) {
    if (!contents) return [skip(), skip(), skip()];
    const mb = (contents.length * 0.75) / 1e6;
    if (mb > most / 1e6) {
      return [skip(), `${name} has ${mb.toFixed(1)} MB; this page takes up to ${most / 1e6} MB.`, null];
    }
    return [{ contents, at: Date.now() }, "", null];
  }

  /* The drawing library remembers where it stands on the page until something scrolls. Text above it may have grown
     since, and clicks would miss their nodes: so it is told, before it hears of the pointer itself. */
  for (const kind of ["pointerover", "pointerdown"]) {
    const tell = (event) => {
      const canvas = event.target instanceof Element ? event.target.closest(".canvas") : null;
      const inside = canvas ? [...canvas.querySelectorAll("*")] : [];
      inside.filter((element) => element._cyreg).forEach((element) => element.dispatchEvent(new Event("scroll")));
    };
    document.addEventListener(kind, tell, true);
  }

  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    explorer: { groups, draw, drawSecond, views, hover, panning, play, picture, upload },
  });
})();
