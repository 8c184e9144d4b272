// A custom model, written from the ops, trained by the same trainer as the built-in ones: HSTU's block with one
// change, a ReLU feed-forward after the attention. No Rust, no change to the package.
//
//   npx turbogr synth --out log.csv --users 500 --videos 300 --mean-length 60
//   npx jiti examples/own-model.ts log.csv [run folder]
//
// T tokens, D width, N = longest sequence + output slots.

import { type ModelDefinition, matrix, normal, ops, type ResolvedConfig, train, vector, xavierUniform } from 'turbogr';

function hstuWithFeedForward({ model }: ResolvedConfig): ModelDefinition {
  const { d, heads, blocks, dropout, maxLength, outputSlots } = model;
  const n = maxLength + outputSlots;
  const names = Array.from({ length: blocks }, (_, l) => `blocks.${l}`);
  return {
    kind: 'hstu-with-feed-forward',
    d,
    maxLength,
    parameters: names.flatMap(name => [
      matrix(`${name}.uvqk`, [d, 4 * d], normal(0.02)),
      vector(`${name}.pos_w`, 2 * n - 1, normal(0.02)),
      matrix(`${name}.out`, [d, d], xavierUniform(d, d)),
      matrix(`${name}.w1`, [d, 2 * d], xavierUniform(d, 2 * d)),
      matrix(`${name}.w2`, [2 * d, d], xavierUniform(2 * d, d)),
    ]),
    forward({ tape, x, tokens, weights }) {
      for (const name of names) {
        const projection = { norm: 'layer', act: 'silu', headWidths: [d / heads] } as const;
        const y = ops.normLinear(tape, x, weights(`${name}.uvqk`), projection); // [T, 4D]
        const qkv = { v: y.columns(d, d), q: y.columns(2 * d, d), k: y.columns(3 * d, d) };
        const o = ops.hstuAttention(tape, qkv, tokens, { heads, n, posW: weights(`${name}.pos_w`) }); // [T, D]
        const gated = { u: y.columns(0, d), o, x };
        x = ops.gatedNormLinearResidual(tape, gated, weights(`${name}.out`), { norm: 'layer', dropout });
        const hidden = ops.normLinear(tape, x, weights(`${name}.w1`), { norm: 'layer', act: 'relu' }); // [T, 2D]
        x = ops.linearResidual(tape, { x: hidden, residual: x }, weights(`${name}.w2`), { dropIn: dropout });
      }
      return x;
    },
    flops: length => blocks * (6 * 9 * d * d * length + 6 * d * length * (length + 1)),
  };
}

const [log = 'log.csv', run] = process.argv.slice(2);
const report = await train({
  data: log,
  ...(run !== undefined && { run }),
  config: { model: { d: 48, heads: 2, maxLength: 100 }, epochs: 12 },
  model: hstuWithFeedForward,
  onEvent: event => {
    if (event.kind === 'validation') console.log(`epoch ${event.epoch + 1}: ${event.metric} ${event.value.toFixed(4)}`);
  },
});
for (const [ranker, metrics] of Object.entries(report.test?.metrics ?? {})) {
  console.log(ranker.padEnd(20), 'hr@10', metrics['hr@10']?.value.toFixed(4));
}
