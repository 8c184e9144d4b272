// Human-readable numbers. No Node APIs: the dashboard uses this in the browser.

const WHOLE = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/** 1234567 -> 1,234,567 */
export function formatCount(value: number): string {
  return WHOLE.format(value);
}

/** 1, 'step' -> 1 step; 1234, 'step' -> 1,234 steps */
export function formatCounted(value: number, noun: string): string {
  return `${formatCount(value)} ${noun}${value === 1 ? '' : 's'}`;
}

/** 0.1234 -> 12.34 % */
export function formatShare(share: number, digits = 2): string {
  return `${(share * 100).toFixed(digits)} %`;
}

/** 83.4 -> 1 min 23 s */
export function formatSeconds(seconds: number): string {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** 83970048 -> 84.0 M */
export function formatShort(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e9) return `${(value / 1e9).toFixed(2)} G`;
  if (size >= 1e6) return `${(value / 1e6).toFixed(2)} M`;
  if (size >= 1e4) return `${(value / 1e3).toFixed(1)} k`;
  return formatCount(value);
}

export function formatBytes(bytes: number): string {
  if (bytes >= 2 ** 30) return `${(bytes / 2 ** 30).toFixed(2)} GiB`;
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}
