// The whole job from TypeScript: a log, a store, a trained model, its figures, recommendations.
//
//   npx jiti examples/library.ts

import { defineConfig, evaluate, openRecommender, prepare, synthesize, train } from 'turbogr';

await synthesize({ out: 'runs/example/log.csv', users: 500, videos: 500, meanLength: 80 });
await prepare({ files: ['runs/example/log.csv'], out: 'runs/example/store', force: true });

const config = defineConfig({
  model: { kind: 'hstu', size: 'tiny' },
  optimizer: { lr: 3e-3 },
  batch: { tokens: 4096 },
  epochs: 10,
  evaluation: { patience: 3 },
});
const { run, digest } = await train({ data: 'runs/example/store', config, run: 'runs/example/run' });
console.log(`weights ${digest.slice(0, 16)} in ${run}`);

const { metrics } = await evaluate(run, { exclude: 'history' });
for (const [ranker, { 'hr@10': hr }] of Object.entries(metrics)) console.log(ranker, hr?.value, '±', hr?.margin);

using recommender = openRecommender(run);
console.log(await recommender.recommend(recommender.historyOf(0), { k: 5 }));
console.log(await recommender.recommend([12, 48, 7], { k: 5 })); // somebody who is not in the log
