// Builds the documentation as a small site: static HTML without scripts or network resources, light and dark.
//
//   npm run docs [-- out]     default: dist/docs
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Marked } from 'marked';
import { readApi } from './docs/api.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Sections of the menu; unlisted pages are under "More". */
const MENU = {
  Start: ['index', 'guide', 'installing', 'recipes'],
  Use: [
    'preparing',
    'training',
    'defaults',
    'negatives',
    'features',
    'watching',
    'updating',
    'exporting',
    'serving',
    'clusters',
  ],
  Understand: ['paper-map', 'paper', 'ARCHITECTURE', 'results', 'LOG', 'CONTRIBUTING'],
  Reference: ['api'],
};

/** Every page of the site by name, as Markdown. */
export function readPages() {
  const pages = new Map([['index', readFileSync(join(root, 'README.md'), 'utf8')]]);
  for (const name of ['ARCHITECTURE', 'CONTRIBUTING']) pages.set(name, readFileSync(join(root, `${name}.md`), 'utf8'));
  for (const file of readdirSync(join(root, 'docs'))
    .filter(file => file.endsWith('.md'))
    .sort())
    pages.set(basename(file, '.md'), readFileSync(join(root, 'docs', file), 'utf8'));
  pages.set('api', apiPage());
  return pages;
}

function apiPage() {
  const entries = readApi(join(root, 'dist', 'index.d.ts'));
  const sections = entries.map(
    ({ name, comment, declaration }) =>
      `## ${name}\n\n${comment.replaceAll(/\{@link (\w+)\}/g, '`$1`')}\n\n\`\`\`ts\n${declaration}\n\`\`\``,
  );
  return `# API\n\nAll exports of \`import ... from 'turbogr'\`, from the package's types.\n\n${sections.join('\n\n')}\n`;
}

export function buildDocs(out) {
  const pages = readPages();
  const names = new Set(pages.keys());
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const missing = [];
  for (const [name, text] of pages) {
    const { html, title } = render(text, link => siteLink(link, names, problem => missing.push(`${name}: ${problem}`)));
    writeFileSync(join(out, `${name}.html`), page(title, html, name, pages));
  }
  cpSync(join(root, 'docs', 'images'), join(out, 'images'), { recursive: true });
  for (const file of ['scaling.svg', 'paper.svg', 'paper-ladder.svg'])
    cpSync(join(root, 'docs', file), join(out, file));
  if (missing.length > 0) throw new Error(`links to nowhere:\n${missing.join('\n')}`);
  return [...names];
}

function render(text, link) {
  const seen = new Map();
  let title = 'TurboGR';
  const marked = new Marked({
    walkTokens: token => {
      if (token.type === 'link' || token.type === 'image') token.href = link(token.href);
    },
    renderer: {
      heading({ tokens, depth, text: plain }) {
        if (depth === 1) title = plain;
        const slug = plain
          .toLowerCase()
          .replace(/[^\w\- ]/g, '')
          .trim()
          .replace(/ +/g, '-');
        const count = seen.get(slug) ?? 0;
        seen.set(slug, count + 1);
        const id = count === 0 ? slug : `${slug}-${count}`;
        return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      table(token) {
        const cell = ({ tokens }, tag) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`;
        const head = token.header.map(entry => cell(entry, 'th')).join('');
        const rows = token.rows.map(row => `<tr>${row.map(entry => cell(entry, 'td')).join('')}</tr>`).join('\n');
        return `<div class="scroll"><table><thead><tr>${head}</tr></thead><tbody>${rows}</tbody></table></div>\n`;
      },
    },
  });
  const html = marked.parse(text);
  return { html, title };
}

/** Target of a Markdown link on the site; links to repository files that are not pages are removed. */
function siteLink(href, names, complain) {
  if (/^(https?:|#)/.test(href)) return href;
  const [path, anchor] = href.split('#');
  const clean = path.replace(/^(\.\.?\/)*/, '').replace(/^docs\//, '');
  if (clean.endsWith('.md')) {
    const name = clean === 'README.md' ? 'index' : basename(clean, '.md');
    if (!names.has(name)) complain(href);
    return `${name}.html${anchor ? `#${anchor}` : ''}`;
  }
  const inDocs = existsSync(join(root, 'docs', clean));
  if (!inDocs && !existsSync(join(root, clean))) complain(href);
  return clean;
}

function page(title, html, current, pages) {
  const placed = new Set(Object.values(MENU).flat());
  const rest = [...pages.keys()].filter(name => !placed.has(name));
  const sections = { ...MENU, ...(rest.length > 0 && { More: rest }) };
  const titleOf = name => (name === 'index' ? 'TurboGR' : (/^# (.+)$/m.exec(pages.get(name))?.[1] ?? name));
  const menu = Object.entries(sections).map(([section, names]) => {
    const links = names
      .filter(name => pages.has(name))
      .map(name => `<a href="${name}.html"${name === current ? ' aria-current="page"' : ''}>${titleOf(name)}</a>`);
    return `<b>${section}</b>${links.join('')}`;
  });
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>${title.replace(/[<>&]/g, '')}</title><link rel="stylesheet" href="style.css"></head>
<body><nav>${menu.join('\n')}</nav><main>
${html}
</main></body></html>
`;
}

const STYLE = `*{box-sizing:border-box}body{margin:0;display:grid;grid-template-columns:220px minmax(0,1fr);background:var(--bg);color:var(--ink);font:16px/1.6 system-ui,sans-serif}
nav{position:sticky;top:0;height:100vh;overflow-y:auto;padding:20px 16px;border-right:1px solid var(--line);background:var(--panel);font-size:14px}
nav b{display:block;margin:14px 0 4px;color:var(--muted);font-weight:600}nav a{display:block;padding:2px 0;color:var(--ink);text-decoration:none}nav a[aria-current]{color:var(--accent);font-weight:600}
main{max-width:900px;padding:24px 32px 64px}h1{font-size:28px}h2{font-size:21px;margin-top:36px}a{color:var(--accent)}img{max-width:100%;border:1px solid var(--line);border-radius:8px}
code{font:.88em ui-monospace,monospace;background:var(--panel);border-radius:4px;padding:1px 4px}pre{background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:12px 14px;overflow-x:auto;line-height:1.45}pre code{padding:0;background:none}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:14px}th,td{text-align:left;vertical-align:top;padding:5px 14px 5px 0;border-bottom:1px solid var(--line)}
@media(max-width:760px){body{display:block}nav{position:static;height:auto;border:0}main{padding:12px 16px 48px}}
`;

async function main() {
  const out = process.argv[2] ?? join(root, 'dist', 'docs');
  const names = buildDocs(out);
  const { THEME_CSS } = await import('../dist/view/theme.js');
  writeFileSync(join(out, 'style.css'), THEME_CSS + STYLE);
  console.log(`${names.length} pages in ${out}`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await main();
