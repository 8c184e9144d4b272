// Checks the documentation: every command in it is run, or listed with a reason; every flag it names exists; the site builds without
// network access and has no broken links.
import { spawn } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildDocs, readPages } from '../../scripts/build-docs.mjs';
import { prepare } from '../../src/index.js';
import { SHOWN } from './commands.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const MAIN = join(root, 'dist', 'cli', 'main.js');
const folder = mkdtempSync(join(tmpdir(), 'turbogr-docs-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const documents = [
  'README.md',
  ...readdirSync(join(root, 'docs'))
    .filter(file => file.endsWith('.md') && file !== 'LOG.md')
    .map(file => `docs/${file}`),
];
const texts = documents.map(file => ({ file, text: readFileSync(join(root, file), 'utf8') }));

/** Commands of shell blocks: comments taken off, continued lines joined. */
function shownCommands(): { file: string; command: string }[] {
  return texts.flatMap(({ file, text }) =>
    [...text.matchAll(/^```sh\n([\s\S]*?)^```/gm)].flatMap(([, block]) =>
      block!
        .replaceAll(/\s*\\\n\s*/g, ' ')
        .split('\n')
        .map(line =>
          line
            .replace(/(^|\s+)#.*$/, '')
            .trim()
            .replace(/^npx turbogr/, 'turbogr'),
        )
        .filter(line => line !== '')
        .map(command => ({ file, command })),
    ),
  );
}

/** Words of a command line; single and double quotes keep spaces. */
function words(command: string): string[] {
  return [...command.matchAll(/(?:[^\s'"]|'[^']*'|"[^"]*")+/g)].map(([word]) =>
    word.replaceAll(/'([^']*)'|"([^"]*)"/g, '$1$2'),
  );
}

function turbogr(args: readonly string[], until?: RegExp): Promise<{ status: number | null; said: string }> {
  const child = spawn(process.execPath, [MAIN, ...args], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  let stopped = false;
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      if (!until || stopped || !until.test(said)) return;
      stopped = true;
      child.kill('SIGTERM');
    });
  }
  return new Promise(resolve => child.on('close', status => resolve({ status, said })));
}

test('every command of a block is run somewhere, or listed with a reason; nothing is listed that is not shown', () => {
  const commands = shownCommands();
  const unknown = commands.filter(({ command }) => !SHOWN[command]).map(({ file, command }) => `${file}: ${command}`);
  expect(unknown).toEqual([]); // a new one goes to tests/docs/commands.ts
  const shown = new Set(commands.map(({ command }) => command));
  expect(Object.keys(SHOWN).filter(command => !shown.has(command))).toEqual([]);
  const unproven = Object.entries(SHOWN).filter(
    ([, { elsewhere }]) => elsewhere && !readFileSync(join(root, elsewhere[0]), 'utf8').includes(elsewhere[1]),
  );
  expect(unproven).toEqual([]);
});

test('a command can be typed as it stands, after `npm install` in a folder: npx comes first', () => {
  const shown = texts.flatMap(({ file, text }) =>
    [...text.matchAll(/^ *turbogr .*/gm)].map(([line]) => `${file}: ${line}`),
  );
  expect(shown).toEqual([]);
  const said = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter(file => file.endsWith('.ts'))
    .flatMap(file =>
      readFileSync(join(root, 'src', file), 'utf8')
        .split('\n')
        .filter(line => !/^\s*(\/|\*)| \/\/ |\.(argument|description|option)\(|new Command\(/.test(line)) // help knows its own name
        .filter(line => /(?<!npx )\bturbogr (train|resume|prepare|tune|plan|ui|launch|config|recommend)\b/.test(line))
        .map(line => `${file}: ${line}`),
    );
  expect(said).toEqual([]);
});

describe('commands', () => {
  beforeAll(async () => {
    const users = [4711, 3, ...Array.from({ length: 40 }, (_, i) => 100 + i)];
    const items = [2858, 12, 48, 7, ...Array.from({ length: 26 }, (_, i) => 300 + i)];
    const rows = users.flatMap((user, u) =>
      Array.from({ length: 12 }, (_, i) => `${user},${items[(u + i) % items.length]},${1_600_000_000 + 1000 * i + u}`),
    );
    writeFileSync(join(folder, 'events.csv'), `user_id,item_id,timestamp\n${rows.join('\n')}\n`);
    const about = items.map((item, i) => `${item},Title ${i},comedy,comedy,${1990 + (i % 9)},${i / 2}`);
    writeFileSync(join(folder, 'items.csv'), `item_id,title,genre,category,year,price\n${about.join('\n')}\n`);
    await prepare({ files: [join(folder, 'events.csv')], out: join(folder, 'store') });
    mkdirSync(join(folder, 'examples'));
    copyFileSync(join(root, 'examples', 'run.yaml'), join(folder, 'examples', 'run.yaml'));
  });

  const run = Object.entries(SHOWN).filter(([, { elsewhere, not }]) => !elsewhere && not === undefined);
  test.each(run)('%s', async (command, { plus = '', until }) => {
    const [program, ...args] = words(command.replace(/ > \S+$/, ''));
    expect(program).toBe('turbogr');
    const { status, said } = await turbogr([...args, ...words(plus)], until);
    expect({ status, said }).toMatchObject({ status: 0 });
  });
});

test('commands named in a sentence or a table exist, and so do their flags', () => {
  const sources = ['src/cli', 'src/bench'].flatMap(place =>
    readdirSync(join(root, place), { recursive: true, encoding: 'utf8' })
      .filter(file => file.endsWith('.ts'))
      .map(file => readFileSync(join(root, place, file), 'utf8')),
  );
  const found = (pattern: RegExp) =>
    new Set(sources.flatMap(text => [...text.matchAll(pattern)].map(([, name]) => name!)));
  const commands = found(/new Command\('([\w-]+)'\)/g);
  const flags = found(/(--[a-z][\w-]*)/g);
  const wrong = texts.flatMap(({ file, text }) =>
    [...text.replaceAll(/^```[\s\S]*?^```/gm, '').matchAll(/`(?:npx )?turbogr ([^`<-][^`]*)`/g)].flatMap(([, rest]) => {
      const [command = '', ...args] = words(rest!);
      const unknown = args.filter(word => word.startsWith('--')).map(word => word.split('=')[0]!);
      return [
        ...(commands.has(command) ? [] : [`${file}: turbogr ${command}`]),
        ...unknown.filter(flag => !flags.has(flag)).map(flag => `${file}: turbogr ${command} ${flag}`),
      ];
    }),
  );
  expect(wrong).toEqual([]);
});

describe('the site', () => {
  test('builds; no link leads nowhere; nothing comes from the network', () => {
    const out = join(folder, 'site');
    const names: string[] = buildDocs(out);
    expect(names).toEqual(expect.arrayContaining(['index', 'guide', 'recipes', 'paper-map', 'api', 'watching']));
    for (const name of names) {
      const page = readFileSync(join(out, `${name}.html`), 'utf8');
      expect(page).not.toMatch(/<script|<link [^>]*https?:|<img [^>]*src="https?:/);
      for (const [, target] of page.matchAll(/(?:href|src)="([^"#:]+)(?:#[^"]*)?"/g)) {
        const known =
          existsSync(join(out, target!)) || existsSync(join(root, target!)) || existsSync(join(root, 'docs', target!));
        expect({ name, target, known: target === 'style.css' || known }).toMatchObject({ known: true });
      }
    }
  });

  test('the API reference has every export of the library, with its declaration', () => {
    const api: string = readPages().get('api')!;
    for (const name of ['train', 'openRecommender', 'TrainOptions', 'SequenceStore', 'ModelDefinition', 'ops'])
      expect(api).toContain(`## ${name}\n`);
    expect(api).toContain('function train(options: TrainOptions): Promise<TrainReport>');
    const exported = [...readFileSync(join(root, 'src', 'index.ts'), 'utf8').matchAll(/export (?:type )?\{([^}]*)\}/g)]
      .flatMap(([, names]) => names!.split(','))
      .map(name => name.trim().replace(/^type /, ''))
      .filter(name => name !== '');
    expect(exported.filter(name => !api.includes(`## ${name}\n`))).toEqual([]);
  });
});
