import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';

describe('turbogr bench prepare', () => {
  it('makes a log, prepares it, and prints one JSON object', () => {
    const run = spawnSync(
      process.execPath,
      ['dist/cli/main.js', 'bench', 'prepare', '--rows', '20000', '--memory', '256MB', '--rounds', '2', '--json'],
      {
        encoding: 'utf8',
      },
    );
    expect(run.stderr).toBe('');
    const result: unknown = JSON.parse(run.stdout);
    expect(result).toMatchObject({ rows: 20_000, memory: '256MB', rounds: 2 });
    for (const figure of ['seconds', 'baseline_seconds', 'ratio', 'read_tokens_per_s']) {
      expect(result).toHaveProperty(figure);
      expect(Object.entries(result ?? {}).find(([name]) => name === figure)?.[1]).toBeGreaterThan(0);
    }
  });
});
