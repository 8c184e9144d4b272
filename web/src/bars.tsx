// Horizontal bars, alone or as a tree of two levels.

export interface BarRow {
  name: string;
  value: number;
  text: string;
  parts?: readonly BarRow[];
}

function Line({ row, most }: { row: BarRow; most: number }) {
  return (
    <span class="bar-row">
      <span class="name">{row.name}</span>
      <span class="track">
        <i style={{ width: `${(100 * row.value) / most}%` }} />
      </span>
      <span class="n">{row.text}</span>
    </span>
  );
}

export function Bars({ title, rows, note }: { title: string; rows: readonly BarRow[]; note?: string }) {
  const most = Math.max(...rows.map(({ value }) => value), Number.MIN_VALUE);
  return (
    <div class="panel">
      <h3>{title}</h3>
      {rows.map((row, i) =>
        row.parts ? (
          <details key={row.name} open={i === 0}>
            <summary>
              <Line row={row} most={most} />
            </summary>
            {row.parts.map(part => (
              <Line key={part.name} row={part} most={most} />
            ))}
          </details>
        ) : (
          <Line key={row.name} row={row} most={most} />
        ),
      )}
      {note && <p class="muted">{note}</p>}
    </div>
  );
}
