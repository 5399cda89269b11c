"use strict";
// A bar for each side's median and a thinner one for the interval around it.
(() => {
  const rows = JSON.parse(document.getElementById("figures").textContent);
  const charts = [];
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // The interval, drawn over the bars.
  const intervals = {
    id: "intervals",
    afterDatasetsDraw(chart) {
      const scale = chart.scales.x;
      const pen = chart.ctx;
      pen.save();
      pen.strokeStyle = color("--text");
      pen.lineWidth = 1.5;
      chart.getDatasetMeta(0).data.forEach((bar, at) => {
        const { low, high } = chart.config.options.plugins.intervals.bars[at];
        const from = scale.getPixelForValue(low);
        const to = scale.getPixelForValue(high);
        const half = Math.min(bar.height / 3, 6);
        pen.beginPath();
        pen.moveTo(from, bar.y - half);
        pen.lineTo(from, bar.y + half);
        pen.moveTo(from, bar.y);
        pen.lineTo(to, bar.y);
        pen.moveTo(to, bar.y - half);
        pen.lineTo(to, bar.y + half);
        pen.stroke();
      });
      pen.restore();
    },
  };

  const factors = { s: [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]],
    bytes: [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "bytes"]] };
  const unitFor = (unit, most) => {
    const base = unit.replace("/s", "");
    const list = unit === "s" ? factors.s : factors[base];
    if (!list) return [1, unit];
    const [by, name] = list.find(([from]) => most >= from) || list[list.length - 1];
    return [by, unit.endsWith("/s") ? name + "/s" : name];
  };

  // Thousands as the tables have them.
  const spaced = (value) => value.toLocaleString("en").replaceAll(",", " ");

  const draw = (canvas) => {
    const { bars, unit } = rows[canvas.dataset.row];
    const most = Math.max(...bars.map((bar) => bar.high));
    const [by, name] = unitFor(unit, most);
    const shown = bars.map((bar) => ({ low: bar.low / by, high: bar.high / by }));
    charts.push(new Chart(canvas, {
      type: "bar",
      data: {
        labels: bars.map((bar) => bar.side),
        datasets: [{ data: bars.map((bar) => bar.median / by), backgroundColor: color("--bar"), maxBarThickness: 22 }],
      },
      options: {
        indexAxis: "y", animation: false, maintainAspectRatio: false, responsive: true,
        plugins: {
          intervals: { bars: shown }, legend: { display: false },
          tooltip: { callbacks: { label: (item) => bars[item.dataIndex].text } },
        },
        scales: {
          x: { beginAtZero: true, suggestedMax: most / by * 1.02, title: { display: true, text: name, color: color("--faint") },
            ticks: { color: color("--faint"), maxTicksLimit: 5, callback: spaced }, grid: { color: color("--line") } },
          y: { ticks: { color: color("--text"), autoSkip: false }, grid: { display: false } },
        },
      },
      plugins: [intervals],
    }));
  };

  const drawAll = () => {
    charts.splice(0).forEach((chart) => chart.destroy());
    document.querySelectorAll("canvas[data-row]").forEach(draw);
  };
  drawAll();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  window.addEventListener("beforeprint", drawAll);
  window.addEventListener("afterprint", drawAll);
})();
