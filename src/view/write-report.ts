// The reports that a run leaves behind for people, beside `report.json` for programs.

import { join } from 'node:path';
import { writeFileAtomic } from '../util/atomic-file.js';
import { reportMarkdown } from './report-markdown.js';
import { reportPage } from './report-page.js';
import { viewRun } from './run-view.js';

/** Writes `report.html` and `report.md` of a run as it is now; their paths. */
export function writeReport(path: string): { html: string; markdown: string } {
  const view = viewRun(path);
  const [html, markdown] = [join(path, 'report.html'), join(path, 'report.md')];
  writeFileAtomic(html, reportPage(view));
  writeFileAtomic(markdown, reportMarkdown(view));
  return { html, markdown };
}
