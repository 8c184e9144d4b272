// Time and memory: breakdown of wall time, of a step by stage and op, and of memory by owner.

import { formatBytes, formatSeconds, formatShare } from '../../src/util/format.js';
import type { RunView } from './api.js';
import { type BarRow, Bars } from './bars.js';

type Sample = RunView['samples'][number];

function byStage({ ops }: Sample): BarRow[] {
  const stages = new Map<string, BarRow[]>();
  for (const { stage, op, stream, milliseconds, calls } of ops) {
    const text = `${milliseconds.toFixed(2)} ms, ${calls.toFixed(calls % 1 === 0 ? 0 : 1)}×`;
    const row = { name: stream === 'compute' ? op : `${op} (${stream})`, value: milliseconds, text };
    stages.set(stage, [...(stages.get(stage) ?? []), row]);
  }
  return [...stages]
    .map(([name, parts]): BarRow => {
      const value = parts.reduce((sum, part) => sum + part.value, 0);
      return { name, value, text: `${value.toFixed(2)} ms`, parts };
    })
    .sort((a, b) => b.value - a.value);
}

function streams({ busy, exposed, milliseconds }: Sample): string {
  const shares = Object.entries(busy).map(([name, ms]) => `${name} ${formatShare(ms / milliseconds, 0)}`);
  return `Busy share of the step: ${shares.join(', ')}. Exposed communication: ${exposed.toFixed(2)} ms.`;
}

export function Costs({ view: { time, samples } }: { view: RunView }) {
  const part = (name: string, seconds: number): BarRow => {
    return {
      name,
      value: seconds,
      text: `${formatSeconds(seconds)} (${formatShare(seconds / Math.max(1e-9, time.wall), 1)})`,
    };
  };
  return (
    <div class="charts top">
      <div class="stack">
        <Bars
          title="Effective training time: breakdown of wall time"
          rows={[
            part('training steps', time.training),
            part('validation', time.validation),
            part('checkpoints', time.checkpoints),
            part('other: start, pauses, lost steps', time.other),
          ]}
        />
        {samples.map(({ rank, memory }) => (
          <Bars
            key={rank}
            title={`Memory by owner (rank ${rank})`}
            rows={Object.entries(memory).map(([name, bytes]) => ({ name, value: bytes, text: formatBytes(bytes) }))}
          />
        ))}
      </div>
      {samples.map(sample => (
        <Bars
          key={sample.rank}
          title={`A step by stage and op: ${sample.milliseconds.toFixed(1)} ms (rank ${sample.rank}, step ${sample.step})`}
          rows={byStage(sample)}
          note={streams(sample)}
        />
      ))}
    </div>
  );
}
