// The commands, in the order of typical use: one file per command, loaded on demand.
import type { LazyCommands } from './lazy-commands.js';

export const COMMANDS: LazyCommands = {
  demo: async () => (await import('./demo.js')).demoCommand(),
  synth: async () => (await import('./synth.js')).synthCommand(),
  prepare: async () => (await import('./prepare.js')).prepareCommand(),
  train: async () => (await import('./train.js')).trainCommand(),
  resume: async () => (await import('./resume.js')).resumeCommand(),
  refit: async () => (await import('./refit.js')).refitCommand(),
  update: async () => (await import('./update.js')).updateCommand(),
  tune: async () => (await import('./tune.js')).tuneCommand(),
  launch: async () => (await import('./launch.js')).launchCommand(),
  ranks: async () => (await import('./ranks.js')).ranksCommand(),
  plan: async () => (await import('./plan.js')).planCommand(),
  evaluate: async () => (await import('./evaluate.js')).evaluateCommand(),
  compare: async () => (await import('./compare.js')).compareCommand(),
  ui: async () => (await import('./ui.js')).uiCommand(),
  recommend: async () => (await import('./recommend.js')).recommendCommand(),
  similar: async () => (await import('./similar.js')).similarCommand(),
  embed: async () => (await import('./embed.js')).embedCommand(),
  serve: async () => (await import('./serve.js')).serveCommand(),
  export: async () => (await import('./export.js')).exportCommand(),
  config: async () => (await import('./config.js')).configCommand(),
  bench: async words => (await import('./bench.js')).benchCommand(words),
  doctor: async () => (await import('./doctor.js')).doctorCommand(),
};
