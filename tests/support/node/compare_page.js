// Looks at a page of `mlenv compare` in a headless browser: nothing on the console, nothing fetched, nothing
// that axe-core finds, wide and narrow, light and dark, with and without scripts, and on paper.
//   node compare_page.js CHROMIUM PAGE FOLDER_OF_SCREENSHOTS
const { chromium } = require("playwright-core");
const axe = require("axe-core");

const views = [
  { name: "desktop", viewport: { width: 1280, height: 900 }, colorScheme: "light" },
  { name: "dark", viewport: { width: 1280, height: 900 }, colorScheme: "dark" },
  { name: "phone", viewport: { width: 390, height: 800 }, colorScheme: "light" },
  { name: "paper", viewport: { width: 690, height: 1000 }, colorScheme: "light", media: "print" },
  { name: "plain", viewport: { width: 1280, height: 900 }, colorScheme: "light", javaScriptEnabled: false },
];

// What reaches over the right end of what holds it, and would be cut there.
function cut() {
  const faults = [];
  for (const one of document.querySelectorAll("canvas, article td, article th")) {
    if (one.getBoundingClientRect().right > one.closest("article").getBoundingClientRect().right + 1) {
      faults.push(`cut: ${one.closest("article").id}: ${one.localName}`);
    }
  }
  return faults;
}

async function look(browser, file, folder, { name, media, ...settings }) {
  const context = await browser.newContext(settings);
  const page = await context.newPage();
  const faults = [];
  page.on("console", (message) => faults.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (request.url() !== `file://${file}`) faults.push(`fetched: ${request.url()}`);
  });
  await page.goto(`file://${file}`);
  if (media) await page.emulateMedia({ media });
  if (!(await page.locator("article table").count())) faults.push("no table");
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
  if (wide) faults.push("wider than the screen");
  if (settings.javaScriptEnabled !== false) {
    faults.push(...(await page.evaluate(cut)));
    const drawn = await page.evaluate(() => [...document.querySelectorAll("canvas")].filter(
      (one) => one.getContext("2d").getImageData(0, 0, one.width, one.height).data.some((byte) => byte !== 0)).length);
    if (drawn !== (await page.locator("canvas").count())) faults.push(`${drawn} charts are drawn`);
    await page.evaluate(axe.source);
    const found = await page.evaluate(() => window.axe.run());
    for (const one of found.violations) faults.push(`axe: ${one.id}: ${one.nodes.length} × ${one.help}`);
  }
  await page.screenshot({ path: `${folder}/${name}.png` });
  if (name === "desktop") await page.pdf({ path: `${folder}/paper.pdf`, format: "A4" });
  await context.close();
  return faults.map((fault) => `${name}: ${fault}`);
}

async function main([executablePath, file, folder]) {
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
  try {
    const faults = [];
    for (const view of views) faults.push(...(await look(browser, file, folder, view)));
    if (faults.length > 0) throw new Error(faults.join("\n"));
  } finally {
    await browser.close();
  }
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error.message);
  process.exit(1);
});
