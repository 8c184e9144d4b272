// The public ops, from which custom models are written. Optimisers, losses, negatives and retrieval are internal and may
// change without notice.

export { embeddingGather } from './embedding-gather.js';
export { fuxiAttention } from './fuxi-attention.js';
export { gatedNormLinearResidual } from './gated-norm-linear-residual.js';
export { hstuAttention } from './hstu-attention.js';
export { linearResidual } from './linear-residual.js';
export { norm } from './norm.js';
export { normLinear } from './norm-linear.js';
export { Parameter } from './parameter.js';
export { type JaggedTokens, type Qkv, type RelativeOptions, TIME_ENTRIES } from './relative-attention.js';
export { softmaxAttention } from './softmax-attention.js';
export { swigluLinearResidual } from './swiglu-linear-residual.js';
export { Tape } from './tape.js';
