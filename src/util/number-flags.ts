// Parsers for numeric flags, shared by all commands: commander prints the message next to the flag.

import { InvalidArgumentError } from '@commander-js/extra-typings';

/** A whole number, 0 included. */
export function wholeNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(text);
}

/** A whole number of at least 1. */
export function countNumber(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new InvalidArgumentError('It must be a whole number above 0.');
  return Number(text);
}

export function positiveNumber(text: string): number {
  const value = Number(text);
  if (!(value > 0 && value < Number.POSITIVE_INFINITY)) throw new InvalidArgumentError('It must be a number above 0.');
  return value;
}

export function finiteNumber(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value)) throw new InvalidArgumentError('It must be a number.');
  return value;
}

/** Counts with a suffix: 5000, 60e6, 60M, 5k. */
export function largeCount(text: string): number {
  const match = /^([\d.]+(?:e\d+)?)([kM]?)$/.exec(text);
  const value = match ? Number(match[1]) * (match[2] === 'M' ? 1e6 : match[2] === 'k' ? 1e3 : 1) : Number.NaN;
  if (!(value > 0)) throw new InvalidArgumentError('It must be a number above 0, for example 5000, 60e6 or 60M.');
  return value;
}
