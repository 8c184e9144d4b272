// The server's API.

import { useEffect, useState } from 'preact/hooks';
import type { RunSummary } from '../../src/ui/app.js';
import type { StoreFacts } from '../../src/ui/store-facts.js';
import type { StepsSampled } from '../../src/events/event.js';
import type { Comparison } from '../../src/view/compare.js';
import type { RunView } from '../../src/view/run-view.js';

export type { Comparison, RunSummary, RunView, StepsSampled, StoreFacts };

export class Refusal extends Error {
  readonly code: string;
  readonly remedy: string;

  constructor({ code = 'internal', message = 'the server failed', remedy = '' }) {
    super(message);
    this.code = code;
    this.remedy = remedy;
  }
}

async function get<T>(path: string): Promise<T> {
  const response = await fetch(path);
  if (!response.ok) throw new Refusal(await response.json());
  const body: T = await response.json();
  return body;
}

export const getRuns = (): Promise<RunSummary[]> => get('api/runs');
export const getSpans = (id: string): Promise<StepsSampled[]> => get(`api/runs/${id}/spans`);
export const getStore = (id: string): Promise<StoreFacts> => get(`api/runs/${id}/store`);
export const getComparison = (a: string, b: string, anyway: boolean): Promise<Comparison> =>
  get(`api/compare?a=${a}&b=${b}${anyway ? '&anyway=1' : ''}`);

export interface Loaded<T> {
  value?: T;
  error?: Refusal | Error;
}

/** Loads data again when `keys` change; the previous result stays until the next arrives. */
export function useLoaded<T>(load: () => Promise<T>, keys: unknown[]): Loaded<T> {
  const [state, setState] = useState<Loaded<T>>({});
  useEffect(() => {
    let current = true;
    load().then(
      value => current && setState({ value }),
      (error: Error) => current && setState({ error }),
    );
    return () => {
      current = false;
    };
  }, keys);
  return state;
}

/** The list of runs, polled every few seconds. */
export function useRuns(): Loaded<RunSummary[]> {
  const [tick, setTick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setTick(n => n + 1), 3000);
    return () => clearInterval(timer);
  }, []);
  return useLoaded(getRuns, [tick]);
}

/** A live view of a run; `live` is false while the server does not answer. */
export function useRun(id: string): { view?: RunView; live: boolean } {
  const [state, setState] = useState<{ id: string; view?: RunView; live: boolean }>({ id, live: false });
  useEffect(() => {
    setState({ id, live: false });
    const source = new EventSource(`api/runs/${id}/stream`);
    source.addEventListener('message', ({ data }) => setState({ id, view: JSON.parse(data), live: true }));
    source.addEventListener('open', () => setState(old => ({ ...old, live: true })));
    source.addEventListener('error', () => setState(old => ({ ...old, live: false })));
    return () => source.close();
  }, [id]);
  return state.id === id ? state : { live: false };
}
