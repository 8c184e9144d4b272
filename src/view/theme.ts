// Colours of reports and dashboard, light and dark. `data-theme` on the root element wins over the system's choice.

const LIGHT = `--bg:#f7f7f5;--panel:#fff;--ink:#1c2430;--muted:#5c6776;--line:#e2e5ea;--accent:#2456c7;--good:#13795b;--warn:#9a5b00;--bad:#b3261e;
--c0:#2456c7;--c1:#cf5a1d;--c2:#13866a;--c3:#8347bd;--c4:#a17900;--c5:#c02e6b`;
const DARK = `--bg:#11151b;--panel:#191f27;--ink:#e6eaf0;--muted:#9ba8b7;--line:#2b343f;--accent:#7ba7ff;--good:#57d1a8;--warn:#f0b35a;--bad:#ff8a80;
--c0:#7ba7ff;--c1:#ff9f6b;--c2:#57d1a8;--c3:#c79dff;--c4:#e2bf4d;--c5:#ff8fbb`;

export const THEME_CSS = `:root{color-scheme:light dark;${LIGHT}}
@media (prefers-color-scheme:dark){:root{${DARK}}}
:root[data-theme=light]{color-scheme:light;${LIGHT}}
:root[data-theme=dark]{color-scheme:dark;${DARK}}
`;
