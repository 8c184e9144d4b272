// Pages by address: the list of runs, a run, two runs side by side.

import { useEffect, useRef, useState } from 'preact/hooks';
import { ComparePage } from './compare-page.js';
import { RunList } from './run-list.js';
import { RunPage } from './run-page.js';
import { toggleTheme } from './theme.js';

const KEYS = [
  ['j, k', 'next and previous run'],
  ['Enter', 'open the run'],
  ['x', 'mark a run for comparison'],
  ['c', 'compare the two marked runs'],
  ['Esc', 'back to the list'],
  ['t', 'light or dark'],
  ['?', 'these keys'],
] as const;

function useHash(): string {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = (): void => setHash(location.hash);
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  return hash;
}

/** Ignores keys while typing or with a modifier. */
export function useKeys(act: (key: string) => void): void {
  const latest = useRef(act);
  latest.current = act; // synchronously: an effect would run after the next paint, too late for a fast key
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const typing = event.target instanceof HTMLElement && event.target.matches('input[type=text], textarea');
      if (!typing && !event.ctrlKey && !event.metaKey && !event.altKey) latest.current(event.key);
    };
    addEventListener('keydown', pressed);
    return () => removeEventListener('keydown', pressed);
  }, []);
}

export function App() {
  const [, page = '', first = '', second = ''] = useHash().split('/');
  const [help, setHelp] = useState(false);
  useKeys(key => {
    if (key === 't') toggleTheme();
    else if (key === '?') setHelp(shown => !shown);
    else if (key === 'Escape' && help) setHelp(false);
    else if (key === 'Escape') location.hash = '#/';
  });
  return (
    <>
      <header class="bar">
        <a href="#/" class="home">
          TurboGR
        </a>
        <span class="grow" />
        <button type="button" onClick={() => setHelp(shown => !shown)} aria-expanded={help}>
          Keys
        </button>
        <button type="button" onClick={toggleTheme} aria-label="light or dark">
          ◐
        </button>
      </header>
      {help && (
        <div class="panel help" role="dialog" aria-label="keys">
          {KEYS.map(([key, what]) => (
            <div>
              <kbd>{key}</kbd> {what}
            </div>
          ))}
        </div>
      )}
      <main>
        {page === 'run' ? (
          <RunPage id={first} />
        ) : page === 'compare' ? (
          <ComparePage a={first} b={second} />
        ) : (
          <RunList />
        )}
      </main>
    </>
  );
}
