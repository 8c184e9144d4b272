// One measured figure of `turbogr bench negatives`, and the problem sizes.

export interface NegativesRow {
  name: string;
  value: number;
  unit: string;
  /** The paper's figure for the same quantity, if it reports one. */
  paper?: string;
}

export interface NegativesSize {
  /** Width, blocks, tokens, items and number of the steps. */
  d: number;
  blocks: number;
  tokens: number;
  items: number;
  steps: number;
  /** Items of the full softmax. */
  catalogue: number;
  /** Rows of the 16-bit table. */
  tableRows: number;
  threads?: number | undefined;
}
