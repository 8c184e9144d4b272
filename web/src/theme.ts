// Light or dark: the system's setting until the user chooses.

import { useEffect, useState } from 'preact/hooks';

const CHANGED = 'turbogr-theme';
const stored = localStorage.getItem(CHANGED);
if (stored) document.documentElement.dataset['theme'] = stored;

const system = matchMedia('(prefers-color-scheme: dark)');

function current(): string {
  return document.documentElement.dataset['theme'] ?? (system.matches ? 'dark' : 'light');
}

export function toggleTheme(): void {
  const next = current() === 'dark' ? 'light' : 'dark';
  document.documentElement.dataset['theme'] = next;
  localStorage.setItem(CHANGED, next);
  dispatchEvent(new Event(CHANGED));
}

/** Changes with the colours: canvases have to be redrawn. */
export function useTheme(): string {
  const [theme, setTheme] = useState(current);
  useEffect(() => {
    const changed = (): void => setTheme(current());
    addEventListener(CHANGED, changed);
    system.addEventListener('change', changed);
    return () => {
      removeEventListener(CHANGED, changed);
      system.removeEventListener('change', changed);
    };
  }, []);
  return theme;
}

export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
