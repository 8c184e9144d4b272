// Timeline of the streams of every rank over a few steps.

import { useState } from 'preact/hooks';
import { getSpans, useLoaded } from './api.js';

const ROW = 22;
const ZOOMS = [1, 4, 16];

/** The same op has the same colour everywhere. */
function opColour(op: string): string {
  let hash = 0;
  for (const character of op) hash = (hash * 31 + character.charCodeAt(0)) >>> 0;
  return `var(--c${hash % 6})`;
}

export function Lanes({ id, at }: { id: string; at: number | null }) {
  const { value: samples } = useLoaded(() => (at === null ? Promise.resolve([]) : getSpans(id)), [id, at]);
  const [zoom, setZoom] = useState(1);
  const [shown, setShown] = useState('');
  const rows = (samples ?? []).flatMap(({ rank, spans = [] }) => {
    const streams = [...new Set(spans.map(([stream]) => stream))];
    return streams.map(stream => ({ name: `rank ${rank} ${stream}`, spans: spans.filter(span => span[0] === stream) }));
  });
  if (rows.length === 0) return null;
  const end = Math.max(...rows.flatMap(({ spans }) => spans.map(([, , , start, length]) => start + length)));
  return (
    <div class="panel lanes">
      <div class="row">
        <h3>
          Streams over {(end / 1000).toFixed(1)} ms before step {at}
        </h3>
        <span class="grow" />
        {ZOOMS.map(factor => (
          <button type="button" key={factor} aria-pressed={factor === zoom} onClick={() => setZoom(factor)}>
            {factor}×
          </button>
        ))}
      </div>
      <div class="lanes-body">
        <div class="lane-names">
          {rows.map(({ name }) => (
            <div key={name}>{name}</div>
          ))}
        </div>
        <div class="scroll">
          <svg
            width={`${100 * zoom}%`}
            height={rows.length * ROW}
            viewBox={`0 0 ${end} ${rows.length * ROW}`}
            preserveAspectRatio="none"
          >
            {rows.map(({ name, spans }, y) => (
              <g key={name}>
                {spans.map(([stream, op, lane, start, length]) => (
                  <rect
                    x={start}
                    y={y * ROW + 2}
                    width={Math.max(length, end / 4000 / zoom)}
                    height={ROW - 4}
                    fill={opColour(op)}
                    onMouseEnter={() =>
                      setShown(
                        `${op}, ${(length / 1000).toFixed(3)} ms on ${stream}${lane >= 0 ? `, lane ${lane}` : ''}`,
                      )
                    }
                  />
                ))}
              </g>
            ))}
          </svg>
        </div>
      </div>
      <p class="muted">{shown || 'Point at a bar to see its op.'}</p>
    </div>
  );
}
