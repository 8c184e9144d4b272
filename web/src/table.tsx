// Rows of text; the first cell names the row, a leading `*` marks the best of it.

export function Table({
  header,
  rows,
  words,
}: {
  header: readonly string[];
  rows: readonly (readonly string[])[];
  words?: boolean;
}) {
  return (
    <div class="scroll">
      <table class={words ? 'words' : ''}>
        {header.some(name => name !== '') && (
          <thead>
            <tr>
              {header.map(name => (
                <th scope="col">{name}</th>
              ))}
            </tr>
          </thead>
        )}
        <tbody>
          {rows.map(([name = '', ...cells]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              {cells.map(cell => (
                <td class={cell.startsWith('*') ? 'best' : ''}>{cell.replace(/^\*/, '')}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
