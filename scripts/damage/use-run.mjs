// The child process of damage-runs.mjs: damages a copy of a valid run or bundle and uses it in every way a user would.
// Reports how each use ended: 'same' results, 'refused' with a reason and a remedy, 'silent' when results differ, or 'raw'.
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { evaluate, openRecommender, resume } from '../../dist/index.js';
import { explainSystemError, UserError } from '../../dist/util/errors.js';
import { damage } from './mutations.mjs';

const [folder] = process.argv.slice(2);

async function recommend(path) {
  const recommender = openRecommender(path, { threads: 1 });
  try {
    await recommender.verify();
    return JSON.stringify(await recommender.recommend(['1', '5', '2'], { k: 5, at: 1_700_000_000, unknown: 'skip' }));
  } finally {
    recommender.close();
  }
}

async function test(path) {
  return JSON.stringify((await evaluate(path, { threads: 1 })).metrics);
}

async function goOn(path) {
  const report = await resume(path);
  return JSON.stringify([report.digest, report.test.metrics]);
}

/** Readers first: only resuming changes a run. */
const KINDS = {
  run: { recommend, resume: goOn },
  finished: { recommend, evaluate: test },
  bundle: { recommend },
};

async function outcome(use, path, wanted) {
  try {
    const got = await use(path);
    return { how: got === wanted ? 'same' : 'silent', what: got };
  } catch (error) {
    const userError = error instanceof UserError ? error : explainSystemError(error);
    if (userError && userError.message !== '' && userError.remedy !== '')
      return { how: 'refused', what: userError.message };
    return { how: 'raw', what: error instanceof Error ? error.stack : String(error) };
  }
}

async function useAll(kind, path, wanted = {}) {
  const results = {};
  for (const [name, use] of Object.entries(KINDS[kind])) results[name] = await outcome(use, path, wanted[name]);
  return results;
}

function copyOf(kind) {
  const path = join(folder, `${kind}-copy`);
  rmSync(path, { recursive: true, force: true });
  cpSync(join(folder, kind), path, { recursive: true });
  return path;
}

const wanted = {};
for (const kind of Object.keys(KINDS)) {
  const results = await useAll(kind, copyOf(kind));
  wanted[kind] = Object.fromEntries(Object.entries(results).map(([use, { what }]) => [use, what]));
}
process.send({ ready: true, wanted });
process.on('message', ({ kind, seed }) => {
  const path = copyOf(kind);
  const done = damage(path, seed);
  process.send({ seed, started: done });
  void useAll(kind, path, wanted[kind]).then(results => process.send({ seed, done, results }));
});
