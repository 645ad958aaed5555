// Open a page in a browser and say what is wrong with it, as JSON: node check_page.mjs MODULES BROWSER PAGE [SHOTS]
import { createRequire } from "node:module";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, executablePath, file, shots] = process.argv.slice(2);
const require = createRequire(join(resolve(modules), "node_modules", "/"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf-8");
const WIDTHS = [400, 900, 1400];
const PRINTED_PX = 1036; // A4 landscape without its margins, at 96 pixels per inch
const FLAGS = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync";

const found = { errors: [], requests: [], overflows: [], violations: [], sorted: null, focused: null, printed: [] };
const profile = mkdtempSync(join(tmpdir(), "planner-page-"));
const address = pathToFileURL(file).href;

async function look(colorScheme) {
  const browser = await chromium.launchPersistentContext(profile, {
    executablePath, args: FLAGS.split(" "), colorScheme, offline: true, viewport: { width: WIDTHS[0], height: 900 },
  });
  const page = await browser.newPage();
  page.on("console", (message) => message.type() === "error" && found.errors.push(message.text()));
  page.on("pageerror", (error) => found.errors.push(String(error)));
  page.on("request", (request) => request.url() !== address && !request.url().startsWith("data:") && found.requests.push(request.url()));
  await page.goto(address);
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    if (wide > width) found.overflows.push(`${wide} px at ${width}`);
    if (shots) await page.screenshot({ path: join(shots, `${colorScheme}-${width}.png`), fullPage: true });
  }
  await page.evaluate(axe);
  const result = await page.evaluate(() => window.axe.run());
  for (const each of result.violations) {
    found.violations.push(`${colorScheme}: ${each.impact}: ${each.id}: ${each.nodes.length} nodes such as ${each.nodes[0].html.slice(0, 200)} ${each.nodes[0].failureSummary}`);
  }
  if (colorScheme === "light") {
    await sortByKeyboard(page);
    await print(page);
  }
  await browser.close();
}

async function sortByKeyboard(page) {
  const cells = () => page.$$eval("#fleet-1-table", ([caption]) => [...caption.closest("table").tBodies[0].rows].map((row) => row.cells[0].textContent));
  const before = await cells();
  await page.$eval("#fleet-1-table", (caption) => caption.closest("table").querySelector("thead button").focus());
  await page.keyboard.press("Enter");
  await page.keyboard.press("Enter");
  found.sorted = (await cells()).join() === [...before].sort().reverse().join();
  await page.evaluate(() => document.activeElement.blur());
  await page.goto(address);
  await page.keyboard.press("Tab");
  found.focused = await page.evaluate(() => document.activeElement.textContent);
}

async function print(page) {
  await page.emulateMedia({ media: "print" });
  await page.setViewportSize({ width: PRINTED_PX, height: 700 });
  found.printed = await page.evaluate((limit) =>
    [...document.querySelectorAll("table, svg, pre, math")].filter((node) => node.getBoundingClientRect().right > limit + 1)
      .map((node) => `${node.tagName} ${node.textContent.trim().slice(0, 40)} ends at ${node.getBoundingClientRect().right}`), PRINTED_PX);
  if (shots) await page.pdf({ path: join(shots, "page.pdf"), preferCSSPageSize: true });
}

try {
  await look("light");
  await look("dark");
} finally {
  rmSync(profile, { recursive: true, force: true });
}
console.log(JSON.stringify(found, null, 2));
