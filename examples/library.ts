// The whole job from TypeScript: a log, a store, a trained model, its figures, recommendations.
//
//   npx jiti examples/library.ts [folder]

import { defineConfig, evaluate, openRecommender, prepare, synthesize, train } from 'turbogr';

const folder = process.argv[2] ?? 'runs/example';
await synthesize({ out: `${folder}/log.csv`, users: 500, videos: 300, meanLength: 60, margin: false });
await prepare({ files: [`${folder}/log.csv`], out: `${folder}/store`, force: true });

// What is not given is chosen from the log; `npx turbogr config --explain` says how.
const config = defineConfig({ model: { d: 48 }, epochs: 12 });
const { run, digest, verdict } = await train({ data: `${folder}/store`, config, run: `${folder}/run` });
console.log(`weights ${digest.slice(0, 16)} in ${run}: ${verdict?.lines.join('; ')}`);

const { metrics } = await evaluate(run);
for (const [ranker, { 'hr@10': hr }] of Object.entries(metrics)) {
  console.log(ranker.padEnd(20), `hr@10 ${hr?.value.toFixed(4)} ± ${hr?.margin.toFixed(4)}`);
}

const recommender = openRecommender(run);
console.log(await recommender.recommend(recommender.historyAt(0), { k: 5 }));
console.log(await recommender.recommend([12, 48, 7], { k: 5, unknown: 'skip' })); // somebody who is not in the log
recommender.close();
