// HTML building blocks: escaped text, tables, bars.

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, character => ENTITIES[character]!);
}

/** Cells are text; the first column names the rows, a leading `*` marks the best of a row. */
export function htmlTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const cell = (text: string, c: number): string => {
    const tag = c === 0 ? 'th scope="row"' : 'td';
    const best = text.startsWith('*') ? ' class="best"' : '';
    return `<${tag}${best}>${escapeHtml(text.replace(/^\*/, ''))}</${tag.split(' ')[0]}>`;
  };
  const head = header.map(name => `<th scope="col">${escapeHtml(name)}</th>`).join('');
  const body = rows.map(row => `<tr>${row.map(cell).join('')}</tr>`).join('\n');
  return `<div class="scroll"><table><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></div>`;
}

export interface Bar {
  name: string;
  value: number;
  text: string;
}

/** Horizontal bars, scaled to the largest. */
export function htmlBars(bars: readonly Bar[]): string {
  const most = Math.max(...bars.map(({ value }) => value), Number.MIN_VALUE);
  const rows = bars.map(({ name, value, text }) => {
    const width = `${((100 * value) / most).toFixed(1)}%`;
    return `<div class="bar"><span>${escapeHtml(name)}</span><span class="track"><i style="width:${width}"></i></span><span class="n">${escapeHtml(text)}</span></div>`;
  });
  return `<div class="bars">${rows.join('')}</div>`;
}
