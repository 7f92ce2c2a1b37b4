// Opens a report as its readers do: with and without scripts, light and dark, wide and narrow, and
// on paper. Writes a screenshot of each and exits with 1 when the page asks for anything, says
// anything on the console, scrolls sideways, or axe finds a violation of WCAG 2.2 AA.
//
//   node check.mjs REPORT.html FOLDER        (CHROMIUM names the browser, /usr/bin/chromium)
import { mkdtempSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [report, folder] = process.argv.slice(2);
if (!report || !folder) {
  console.error("usage: node check.mjs REPORT.html FOLDER");
  process.exit(1);
}
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const switches = [
  "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
  "disable-component-update", "disable-sync", "disable-dev-shm-usage",
].map((name) => `--${name}`);

async function look(context, name, scripts) {
  const wrong = [];
  const page = await context.newPage();
  page.on("console", (message) => wrong.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => wrong.push(`error: ${error}`));
  page.on("request", (request) => {
    if (!/^(file|data):/.test(request.url())) wrong.push(`request: ${request.url()}`);
  });
  await page.goto(pathToFileURL(resolve(report)).href);
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
  if (scripts) {
    const [wide, window] = await page.evaluate("[document.documentElement.scrollWidth, innerWidth]");
    if (wide > window) wrong.push(`scrolls sideways: ${wide} px in ${window} px`);
    await page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))");
    await page.evaluate(`${axe};undefined`);
    const found = await page.evaluate(`axe.run({ runOnly: ${JSON.stringify(rules)} })`);
    for (const { id, nodes } of found.violations) {
      wrong.push(`axe: ${id}: ${nodes.length} times, first ${nodes[0].html.slice(0, 120)}`);
    }
  }
  await page.close();
  return wrong;
}

mkdirSync(folder, { recursive: true });
const profile = mkdtempSync(join(tmpdir(), "report-check-"));
let failed = false;
try {
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [1280, 390]) {
      for (const javaScriptEnabled of [true, false]) {
        const context = await chromium.launchPersistentContext(
          join(profile, `${colorScheme}-${width}-${javaScriptEnabled}`),
          {
            executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
            args: switches,
            colorScheme,
            javaScriptEnabled,
            viewport: { width, height: 900 },
          },
        );
        const name = `${colorScheme}-${width}${javaScriptEnabled ? "" : "-without-scripts"}`;
        const wrong = await look(context, name, javaScriptEnabled);
        if (colorScheme === "dark" && width === 1280 && javaScriptEnabled) {
          const page = await context.newPage();
          await page.goto(pathToFileURL(resolve(report)).href);
          await page.pdf({ path: join(folder, "paper.pdf"), format: "A4", printBackground: true });
        }
        await context.close();
        console.log(`${name}: ${wrong.length ? wrong.join("\n  ") : "nothing wrong"}`);
        failed ||= wrong.length > 0;
      }
    }
  }
} finally {
  rmSync(profile, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);
