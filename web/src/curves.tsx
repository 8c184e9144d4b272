// The curves of one run.

import { useMemo } from 'preact/hooks';
import { formatShare, formatShort } from '../../src/util/format.js';
import type { RunView } from './api.js';
import { Plot } from './plot.js';

const STEPS = 'steps';

export function Curves({ view }: { view: RunView }) {
  const { steps, validations, baselines, metric, negatives } = view;
  const epochs = useMemo(() => validations.map(({ epoch }) => epoch + 1), [view]);
  const values = useMemo(() => validations.map(({ value }) => value), [view]);
  const lines = useMemo(
    () => Object.entries(baselines ?? {}).map(([name, value]) => ({ name, y: epochs.map(() => value) })),
    [view],
  );
  return (
    <div class="charts">
      <Plot
        title="Training loss"
        xName="step"
        x={steps.step}
        group={STEPS}
        format={value => value.toFixed(3)}
        series={[
          { name: 'highest', y: steps.lossHigh, colour: 0, hidden: true, bandTo: true },
          { name: 'lowest', y: steps.lossLow, colour: 0, hidden: true },
          { name: 'loss', y: steps.loss, colour: 0 },
        ]}
      />
      <Plot
        title={`Validation ${metric} and baselines`}
        xName="epoch"
        x={epochs}
        format={value => value.toFixed(4)}
        fromZero={metric !== 'loglik'}
        series={[
          { name: view.model, y: values, colour: 0, dots: true },
          ...lines.map(({ name, y }, i) => ({ name, y, colour: (i % 5) + 1, dashed: true })),
        ]}
      />
      <Plot
        title="Tokens per second"
        xName="step"
        x={steps.step}
        group={STEPS}
        format={formatShort}
        fromZero
        series={[{ name: 'tokens/s', y: steps.tokensPerSecond, colour: 2 }]}
      />
      <Plot
        title="MFU: share of the FMA peak"
        xName="step"
        x={steps.step}
        group={STEPS}
        format={value => formatShare(value, 1)}
        fromZero
        series={[
          { name: 'useful work', y: steps.mfu, colour: 0 },
          { name: 'as the paper counts', y: steps.mfuPaper, colour: 1 },
        ]}
      />
      <Plot
        title="Learning rate"
        xName="step"
        x={steps.step}
        group={STEPS}
        format={value => value.toExponential(2)}
        fromZero
        series={[{ name: 'lr', y: steps.lr, colour: 3 }]}
      />
      <Plot
        title="Negatives per token"
        xName="step"
        x={negatives.step}
        group={STEPS}
        format={value => value.toFixed(1)}
        fromZero
        series={[
          { name: 'effective', y: negatives.effective, colour: 0 },
          { name: 'masked', y: negatives.masked, colour: 1 },
          { name: 'repeated', y: negatives.repeated, colour: 4 },
        ]}
      />
    </div>
  );
}
