// Writes the human-readable reports of a run, next to the machine-readable `report.json`.

import { join } from 'node:path';
import { writeFileAtomic } from '../util/atomic-file.js';
import { reportMarkdown } from './report-markdown.js';
import { reportPage } from './report-page.js';
import { viewRun } from './run-view.js';

/** Writes `report.html` and `report.md` for a run's current state; returns their paths. */
export function writeReport(path: string): { html: string; markdown: string } {
  const view = viewRun(path);
  const [html, markdown] = [join(path, 'report.html'), join(path, 'report.md')];
  writeFileAtomic(html, reportPage(view));
  writeFileAtomic(markdown, reportMarkdown(view));
  return { html, markdown };
}
