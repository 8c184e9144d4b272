// Suggestions after a run, most promising first.

import type { RunView } from './run-view.js';

export interface NextStep {
  text: string;
  command?: string;
}

/** Below this share of wall time in steps, overhead is too high. */
const LOW_EFFICIENCY = 0.7;

export function nextSteps({ path, report, time, config, state }: RunView): NextStep[] {
  if (state !== 'finished') return [{ text: 'Finish the run.', command: `npx turbogr resume ${path}` }];
  const steps: NextStep[] = [];
  const { verdict } = report ?? {};
  if (report?.stillImproving) {
    const epochs = 2 * Math.max(1, report.epoch);
    const command = `npx turbogr train <data> --run <new folder> --epochs ${epochs}`;
    steps.push({ text: 'Validation was still improving: train longer.', command });
  }
  if (verdict?.kind === 'behind' && config['priors'] === 'off') {
    const command = 'npx turbogr train <data> --run <new folder> --set priors=auto';
    steps.push({ text: "Let the model use what the baselines know: the log's priors.", command });
  }
  if (verdict && verdict.kind !== 'ahead' && verdict.kind !== 'behind') {
    steps.push({ text: verdict.lines[0] ?? '', command: verdict.next });
  }
  steps.push({
    text: 'Search for better settings than these.',
    command: 'npx turbogr tune <store>',
  });
  if (time.training < LOW_EFFICIENCY * time.wall && time.validation > time.training / 4) {
    const command = 'npx turbogr train <data> --set evaluation.every=2';
    steps.push({
      text: 'Validation takes a large share of the time: validate less often, or on fewer users.',
      command,
    });
  }
  if (verdict?.kind === 'ahead') {
    steps.unshift({ text: 'Get recommendations.', command: `npx turbogr recommend ${path} --user <id>` });
    steps.push({ text: 'Serve it over HTTP.', command: `npx turbogr serve ${path}` });
  }
  return steps;
}
