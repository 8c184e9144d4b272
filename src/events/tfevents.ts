// TensorBoard event files: one protobuf message per record, framed as TFRecord. Only what scalars and text need.
//
//   record   length (u64), masked crc32c of it, message, masked crc32c of the message; all little-endian
//   Event    1 wall_time (double)  2 step (int64)  3 file_version (string)  5 summary
//   Summary  1 value (repeated)    Value  1 tag (string)  2 simple_value (float)

const POLYNOMIAL = 0x82f63b78; // CRC-32C (Castagnoli), reflected

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
  return crc;
});

export function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = TABLE[(crc ^ byte) & 0xff]! ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

/** TFRecord masks checksums: rotated, plus a constant. */
function maskedCrc(bytes: Uint8Array): number {
  const crc = crc32c(bytes);
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}

function frame(message: Buffer): Buffer {
  const head = Buffer.alloc(12);
  head.writeBigUInt64LE(BigInt(message.length), 0);
  head.writeUInt32LE(maskedCrc(head.subarray(0, 8)), 8);
  const foot = Buffer.alloc(4);
  foot.writeUInt32LE(maskedCrc(message), 0);
  return Buffer.concat([head, message, foot]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = BigInt(value);
  while (rest > 0x7fn) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  return Buffer.from([...bytes, Number(rest)]);
}

function lengthDelimited(field: number, content: Buffer): Buffer {
  return Buffer.concat([Buffer.from([(field << 3) | 2]), varint(content.length), content]);
}

function wallTime(milliseconds: number): Buffer {
  const bytes = Buffer.alloc(9);
  bytes[0] = (1 << 3) | 1;
  bytes.writeDoubleLE(milliseconds / 1000, 1);
  return bytes;
}

function scalar(tag: string, value: number): Buffer {
  const number = Buffer.alloc(5);
  number[0] = (2 << 3) | 5;
  number.writeFloatLE(value, 1);
  return lengthDelimited(1, Buffer.concat([lengthDelimited(1, Buffer.from(tag)), number]));
}

/** The first record of a file. */
export function fileVersionRecord(milliseconds: number): Buffer {
  return frame(Buffer.concat([wallTime(milliseconds), lengthDelimited(3, Buffer.from('brain.Event:2'))]));
}

/** One point of each curve. */
export function scalarRecord(milliseconds: number, step: number, values: Readonly<Record<string, number>>): Buffer {
  const summary = Buffer.concat(Object.entries(values).map(([tag, value]) => scalar(tag, value)));
  return frame(
    Buffer.concat([wallTime(milliseconds), Buffer.from([2 << 3]), varint(step), lengthDelimited(5, summary)]),
  );
}
