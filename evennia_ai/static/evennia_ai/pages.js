// Draws the charts of the staff's pages from the JSON beside them, and puts what a refused form sent into its
// fields again. All else works without scripts.
(() => {
  const HUES = [212, 28, 140, 330, 262, 52, 186, 0, 95];
  const colour = (n, alpha) => `hsl(${HUES[n % HUES.length]} 55% 50% / ${alpha})`;
  const read = (id) => JSON.parse(document.getElementById(id)?.textContent ?? "null");
  const seconds = (at) => (typeof at === "number" ? at : Date.parse(at) / 1000);
  const ink = () => getComputedStyle(document.body).color;

  const marked = (marks) => ({
    hooks: { draw: [(plot) => {
      const { ctx, bbox } = plot;
      ctx.save();
      ctx.strokeStyle = ink();
      for (const mark of marks) {
        ctx.setLineDash(mark.back ? [1, 5] : [6, 3]);
        const x = plot.valToPos(seconds(mark.at), "x", true);
        if (x < bbox.left || x > bbox.left + bbox.width) continue;
        ctx.beginPath();
        ctx.moveTo(x, bbox.top);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.stroke();
      }
      ctx.restore();
    }] },
  });

  const draw = (figure) => {
    const data = read(figure.dataset.source);
    if (!data || !data.at.length) {
      figure.append("There is nothing to show yet.");
      return;
    }
    // Bars stand side by side on the days there are; a stack's axis is time, an hour for one prompt.
    const stacks = figure.dataset.chart === "stacked";
    const names = Object.keys(data).filter((name) => !["at", "limit", "US dollars"].includes(name));
    const last = data.at.length - 1;
    const columns = [stacks ? data.at.map(seconds) : [...data.at.keys()]];
    const sums = data.at.map(() => 0);
    const moment = (row) => new Date(columns[0][row] * 1000).toLocaleString([], { dateStyle: "short", timeStyle: "short" });
    const total = (row) => `${sums[row].toLocaleString()} in all`;
    const series = [{
      label: stacks ? "at" : "day",
      value: (_, __, ___, row) => (stacks ? `${moment(row ?? last)}, ${total(row ?? last)}` : data.at[row ?? last]),
    }];
    const shown = names.map((name) => {
      if (stacks || names.length > 1) data[name].forEach((value, row) => { sums[row] += value; });
      return stacks || names.length > 1 ? [...sums] : data[name];
    });
    names.forEach((name, n) => {
      const place = names.length - 1 - n; // the highest sum is drawn first, behind the others
      columns.push(shown[place]);
      series.push({
        label: names[place], stroke: colour(place, 1), fill: colour(place, stacks ? 0.75 : 0.85), width: 1,
        // Nothing pointed at: the newest.
        value: (_, __, ___, row) => data[names[place]][row ?? last]?.toLocaleString() ?? "",
        ...(stacks ? { paths: uPlot.paths.stepped({ align: 1 }) } : { paths: uPlot.paths.bars({ size: [0.7, 40] }), points: { show: false } }),
      });
    });
    // A limit far above the rest would press it flat.
    if (data.limit && Math.max(...data.limit) < 4 * Math.max(...sums)) {
      columns.push(data.limit);
      series.push({ label: "limit", stroke: ink(), width: 1, dash: [6, 3], points: { show: false } });
    }
    const axis = { stroke: ink, grid: { stroke: "rgb(128 128 128 / 25%)" } };
    const days = { ...axis, space: 90, incrs: [1, 2, 5, 10, 20, 50, 100], values: (_, places) => places.map((day) => data.at[day] ?? "") };
    const room = (_, low, high) => [Math.max(0, low) - 0.5, Math.min(last, high) + 0.5];
    const span = (_, low, high) => (high - low > 600 ? [low, high] : [low - 300, high + 300]);
    const options = {
      width: Math.max(280, figure.clientWidth - 20), height: 320, series,
      axes: [stacks ? axis : days, { ...axis, size: 70 }],
      scales: { x: { time: stacks, range: stacks ? span : room }, y: { range: (_, low, high) => [0, Math.max(1, high * 1.05)] } },
      plugins: [marked(read(figure.dataset.marks) ?? [])],
    };
    const plot = new uPlot(options, columns, figure);
    addEventListener("resize", () => plot.setSize({ width: Math.max(280, figure.clientWidth - 20), height: 320 }));
  };

  document.querySelectorAll("figure[data-chart]").forEach(draw);

  const typed = new Map([...document.querySelectorAll(".typed")].map((each) => [each.dataset.name, each.textContent]));
  const given = (field) => field.name === "csrfmiddlewaretoken" || typed.get(field.name) === field.value;
  const hidden = (form) => [...form.elements].filter((field) => field.type === "hidden");
  const acts = (form) => [...form.elements].some((field) => field.name === "act" && field.value === typed.get("act"));
  const refused = [...document.forms].find((form) => typed.size && acts(form) && hidden(form).every(given));
  // The form has them again; a button alone had nothing typed beside it.
  if (refused) document.querySelectorAll(".typed").forEach((each) => each.remove());
  for (const field of refused?.elements ?? []) {
    if (!typed.has(field.name) || ["hidden", "submit", "checkbox", "file"].includes(field.type)) continue;
    field.value = typed.get(field.name);
    for (let box = field.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
    field.focus();
  }
})();
