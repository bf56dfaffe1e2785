// Looks at the staff's pages of a started game with headless Chromium. `pages.py` runs it.
//
//   node pages.mjs look BASE PASSWORD FOLDER       load each page in light, dark and phone width
//   node pages.mjs complaints BASE PASSWORD FILE   solve the complaints of a JSON file by clicks
//   node pages.mjs reload BASE PASSWORD SECONDS    reload all pages in turn
//
// It needs playwright-core, axe-core and a Chromium: `npm install` in this folder, `CHROMIUM=path`.
// Prints JSON.
import fs from "fs";
import { createRequire } from "module";

const [what, base, password, extra] = process.argv.slice(2);
const require = createRequire((process.env.PAGES_MODULES ?? import.meta.dirname ?? ".") + "/");
const { chromium } = require("playwright-core");
const LOOKS = {
  light: { viewport: { width: 1200, height: 900 }, colorScheme: "light" },
  dark: { viewport: { width: 1200, height: 900 }, colorScheme: "dark" },
  phone: { viewport: { width: 390, height: 800 }, colorScheme: "light" },
};
// Pages whose pictures stand in the documentation, with the look.
const PICTURES = { assistants: "light", why: "light", budget: "dark", summaries: "phone" };
const SHOWN = { width: 1000, height: 700 };
const SERIOUS = ["serious", "critical"];

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

const visit = async (look) => {
  const context = await browser.newContext(LOOKS[look]);
  const page = await context.newPage();
  await page.goto(base + "/auth/login/?next=/ai/");
  await page.fill("[name=username]", "admin");
  await page.fill("[name=password]", password);
  await Promise.all([page.waitForURL("**/ai/"), page.click("[type=submit]:visible")]);
  return page;
};

// The address of each page, for the first assistant of the overview.
const addresses = async (page) => {
  const one = await page.locator("tbody th a").first().getAttribute("href");
  const found = {
    assistants: "/ai/", spend: "/ai/spend/", log: "/ai/log/", doctor: "/ai/doctor/", state: one,
    talk: `${one}talk/`, search: `${one}search/?q=silver+coins`, summaries: `${one}summaries/`,
    memory: `${one}memory/`, budget: `${one}budget/`, options: `${one}options/`,
  };
  const replies = page.locator("li.assistant a", { hasText: "why" });
  await page.goto(base + found.talk + "?q=Grey+Heron&channel=say");
  if (!(await replies.count())) await page.goto(base + found.talk);
  found.why = await replies.first().getAttribute("href");
  await page.goto(base + found.summaries);
  const raw = page.getByRole("link", { name: /^Raw lines/ });
  if (await raw.count()) found.summary = await raw.first().getAttribute("href");
  return found;
};

const look = async () => {
  const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
  const report = [];
  for (const name of Object.keys(LOOKS)) {
    const page = await visit(name);
    const said = [], foreign = [];
    page.on("console", (m) => ["error", "warning"].includes(m.type()) && said.push(m.text()));
    page.on("pageerror", (e) => said.push(e.message));
    page.on("request", (r) => !r.url().startsWith(base) && !r.url().startsWith("data:") && foreign.push(r.url()));
    for (const [key, address] of Object.entries(await addresses(page))) {
      said.length = foreign.length = 0;
      const began = Date.now();
      const answer = await page.goto(base + address, { waitUntil: "load" });
      const ms = Date.now() - began;
      const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
      if (PICTURES[key] === name) {
        await page.setViewportSize(name === "phone" ? { width: 390, height: 700 } : SHOWN);
        await page.waitForTimeout(300);
        await page.screenshot({ path: `${extra}/pages-${key}.png` });
        await page.setViewportSize(LOOKS[name].viewport);
      }
      // The page forbids foreign scripts, so axe runs in a second view that ignores the policy.
      const view = await page.context().newPage();
      const session = await page.context().newCDPSession(view);
      await session.send("Page.setBypassCSP", { enabled: true });
      await view.goto(base + address);
      await view.evaluate(axe);
      const { violations } = await view.evaluate(() => window.axe.run());
      await view.close();
      report.push({
        look: name, page: key, status: answer.status(), ms, console: [...said], foreign: [...foreign], wide,
        serious: violations.filter((v) => SERIOUS.includes(v.impact)).map((v) => `${v.id}: ${v.nodes[0].target}`),
        minor: violations.filter((v) => !SERIOUS.includes(v.impact)).map((v) => v.id),
      });
    }
    await page.context().close();
  }
  return report;
};

// A complaint: {complaint, steps: [{fill: {label: text}, open: summary, click: name}], see: [text]}.
// Each `click` and each `open` counts; typing does not.
// A label's text holds that of its field, as the options of a list.
const field = (place, label) => place.getByLabel(new RegExp(`^${label}`)).first();

const complaints = async () => {
  const page = await visit("light");
  page.setDefaultTimeout(20000);
  const report = [];
  for (const { complaint, steps, see } of JSON.parse(fs.readFileSync(extra, "utf8"))) {
    let clicks = 0, trouble = "";
    try {
      await page.goto(base + "/ai/");
      for (const { fill = {}, choose = {}, within, nth = 0, open, click } of steps) {
        const place = within ? page.locator(within[0]).filter({ hasText: within[1] }).first() : page.locator("body");
        for (const [label, text] of Object.entries(fill)) await field(place, label).fill(text);
        for (const [label, text] of Object.entries(choose)) await field(place, label).selectOption(text);
        if (open) { await place.locator("summary").filter({ hasText: open }).nth(nth).click(); clicks += 1; }
        if (click) {
          const name = new RegExp(`^${click}`);
          await place.getByRole("link", { name }).or(place.getByRole("button", { name })).nth(nth).click();
          await page.waitForLoadState("load");
          clicks += 1;
        }
      }
      const shown = await page.locator("body").innerText();
      const missing = see.filter((each) => !new RegExp(each, "i").test(shown));
      if (missing.length) trouble = `not on ${page.url()}: ${missing.join(" | ")}`;
    } catch (error) {
      trouble = `${page.url()}: ${error.message.split("\n")[0]}`;
    }
    report.push({ complaint, clicks, trouble });
  }
  return report;
};

const reload = async () => {
  const page = await visit("light");
  const all = Object.entries(await addresses(page));
  const end = Date.now() + 1000 * Number(extra), worst = {};
  let loads = 0;
  while (Date.now() < end) {
    for (const [key, address] of all) {
      const began = Date.now();
      await page.goto(base + address);
      worst[key] = Math.max(worst[key] ?? 0, Date.now() - began);
      loads += 1;
    }
  }
  return { loads, worst_ms: worst };
};

const done = await { look, complaints, reload }[what]();
console.log(JSON.stringify(done, null, 1));
await browser.close();
