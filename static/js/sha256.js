// Worker: the SHA-256 of a file, read in pieces. The browser's own takes a content as a whole, in
// memory, and only where the page came by TLS.
"use strict";
const PIECE_BYTES = 4 * 1024 * 1024;
const BLOCK = 64;

// The first 32 bits behind the point of roots of the first primes (FIPS 180-4).
const primes = [];
for (let number = 2; primes.length < 64; number++) {
  if (primes.every((prime) => number % prime)) primes.push(number);
}
const behindPoint = (root) => ((root % 1) * 2 ** 32) | 0;
const K = Int32Array.from(primes, (prime) => behindPoint(Math.cbrt(prime)));
const BEGIN = primes.slice(0, 8).map((prime) => behindPoint(Math.sqrt(prime)));
const words = new Int32Array(64);

function takeBlock(state, view, at) {
  for (let i = 0; i < 16; i++) words[i] = view.getInt32(at + 4 * i);
  for (let i = 16; i < 64; i++) {
    const x = words[i - 15], y = words[i - 2];
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    words[i] = (words[i - 16] + s0 + words[i - 7] + s1) | 0;
  }
  // To take them apart as a list would take as long as all the rest.
  let a = state[0], b = state[1], c = state[2], d = state[3];
  let e = state[4], f = state[5], g = state[6], h = state[7];
  for (let i = 0; i < 64; i++) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + K[i] + words[i]) | 0;
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g; g = f; f = e; e = (d + t1) | 0; d = c; c = b; b = a; a = (t1 + t2) | 0;
  }
  state[0] += a; state[1] += b; state[2] += c; state[3] += d;
  state[4] += e; state[5] += f; state[6] += g; state[7] += h;
}

function takeAll(state, bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < bytes.length; at += BLOCK) takeBlock(state, view, at);
}

// What is left over, a bit, zeros, and the length in bits.
function lastBlocks(rest, size) {
  const last = new Uint8Array(BLOCK * Math.ceil((rest.length + 9) / BLOCK));
  last.set(rest);
  last[rest.length] = 0x80;
  new DataView(last.buffer).setBigUint64(last.length - 8, BigInt(size) * 8n);
  return last;
}

async function sha256(file) {
  const state = Int32Array.from(BEGIN);
  let rest = new Uint8Array(0);
  for (let at = 0; at < file.size; at += PIECE_BYTES) {
    // All pieces but the last are of whole blocks.
    const bytes = new Uint8Array(await file.slice(at, at + PIECE_BYTES).arrayBuffer());
    const whole = bytes.length - (bytes.length % BLOCK);
    takeAll(state, bytes.subarray(0, whole));
    rest = bytes.subarray(whole);
    postMessage({ read: at + bytes.length });
  }
  takeAll(state, lastBlocks(rest, file.size));
  return [...state].map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}

onmessage = ({ data: file }) =>
  sha256(file).then(
    (digest) => postMessage({ digest }),
    (error) => postMessage({ fault: error.name }),
  );
