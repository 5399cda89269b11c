// Uses JupyterLab as a person does, in a headless browser: a new notebook, cells typed and run.
//   node notebook.js CHROMIUM URL SCREENSHOT
// Ends with 0 once the last cell's output is there.
const { chromium } = require("playwright-core");

const cells = [
  ["6*7", "42"],
  [
    "import numpy as np\nimport matplotlib.pyplot as plt\n" +
      "x = np.linspace(0, 4 * np.pi, 400)\n" +
      'plt.figure(figsize=(7, 2.2))\nplt.plot(x, np.sin(x), x, np.sin(x) * np.exp(-x / 5))\nplt.grid(alpha=0.3)',
    null,
  ],
  ["import sys\nsys.executable", "/opt/venv/bin/python"],
];

async function main([executablePath, url, screenshot]) {
  const browser = await chromium.launch({
    executablePath,
    args: ["--no-sandbox", "--no-proxy-server", "--disable-gpu", "--disable-dev-shm-usage"],
  });
  try {
    const page = await browser.newPage({ viewport: { width: 1100, height: 720 } });
    page.setDefaultTimeout(60000);
    await page.goto(url);
    await page.locator(".jp-LauncherCard[title^='Python 3']").first().click();
    await page.locator(".jp-Notebook .jp-Cell").first().waitFor();
    await page.locator("#jp-main-statusbar", { hasText: "| Idle" }).waitFor();
    for (const [i, [text, expected]] of cells.entries()) {
      const cell = page.locator(".jp-Notebook .jp-CodeCell").nth(i);
      await cell.locator(".cm-content").click();
      // As text of the clipboard comes in: an editor that indents by itself would indent twice.
      await page.keyboard.insertText(text);
      await cell.locator(".cm-content", { hasText: text.split("\n").pop() }).waitFor();
      await page.keyboard.press("Shift+Enter");
      const output = cell.locator(".jp-OutputArea-output").last();
      await output.waitFor();
      if (expected !== null) {
        const found = (await output.innerText()).trim().replace(/^'|'$/g, "");
        if (!found.startsWith(expected)) throw new Error(`cell ${i + 1} gave ${found}, not ${expected}`);
      } else {
        await cell.locator("img").last().waitFor();
      }
      console.log(`cell ${i + 1}: as expected`);
    }
    await page.keyboard.press("Control+s");
    // Saved for the first time it asks for a name; where its home is new, about news.
    const dialog = page.locator(".jp-Dialog");
    await dialog.locator("input.jp-mod-styled, input[type=text], input:not([type])").first().fill("waves.ipynb");
    await dialog.locator("button.jp-mod-accept").click();
    await dialog.waitFor({ state: "detached" });
    await page.getByRole("button", { name: "No", exact: true }).click({ timeout: 5000 }).catch(() => {});
    await page.locator(".Toastify__toast").first().waitFor({ state: "detached" });
    await page.locator(".lm-TabBar-tabLabel", { hasText: "waves.ipynb" }).waitFor();
    await page.locator(".jp-Notebook .jp-CodeCell").first().scrollIntoViewIfNeeded();
    await page.screenshot({ path: screenshot });
  } finally {
    await browser.close();
  }
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error.message);
  process.exit(1);
});
