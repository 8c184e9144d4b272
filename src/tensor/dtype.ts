// Element types of tensors, and the typed arrays that carry them.

/** In the order of the addon's numbers. */
export const DTYPES = ['f32', 'f16', 'i32', 'i64', 'bf16'] as const;
export type Dtype = (typeof DTYPES)[number];

/** The typed array that reading a tensor returns. FP16 and BF16 are raw bits. */
export interface ElementArrays {
  f32: Float32Array;
  f16: Uint16Array;
  i32: Int32Array;
  i64: BigInt64Array;
  bf16: Uint16Array;
}

/** Bytes of an element. */
export const BYTES: Readonly<Record<Dtype, number>> = { f32: 4, f16: 2, i32: 4, i64: 8, bf16: 2 };

/** What can be uploaded; a Float64Array of integers becomes i64. */
export type UploadArray = Float32Array | Uint16Array | Int32Array | BigInt64Array | Float64Array;

/** The dtype that a typed array is uploaded as. */
export function dtypeOf(data: UploadArray): Dtype {
  if (data instanceof Float32Array) return 'f32';
  if (data instanceof Uint16Array) return 'f16';
  if (data instanceof Int32Array) return 'i32';
  return 'i64';
}

const VIEWS: { readonly [D in Dtype]: (bytes: ArrayBuffer) => ElementArrays[D] } = {
  f32: bytes => new Float32Array(bytes),
  f16: bytes => new Uint16Array(bytes),
  i32: bytes => new Int32Array(bytes),
  i64: bytes => new BigInt64Array(bytes),
  bf16: bytes => new Uint16Array(bytes),
};

/** A typed array over the bytes of a tensor. */
export function elements<D extends Dtype>(dtype: D, bytes: ArrayBuffer): ElementArrays[D] {
  return VIEWS[dtype](bytes);
}
