/** A unique id that sorts by the time at which it was made: a UUID of version 7 (RFC 9562). */
export function newIdentifier() {
  const bytes = randomBytes(new Uint8Array(16));
  let time = Date.now();
  for (let place = 5; place >= 0; place -= 1) {
    bytes[place] = time % 256;
    time = Math.floor(time / 256);
  }
  bytes[6] = 0x70 | (bytes[6] & 0x0f);
  bytes[8] = 0x80 | (bytes[8] & 0x3f);
  const digits = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

function randomBytes(bytes) {
  // Node 18 has no global crypto. Ids must be unique, and need not be secret.
  return globalThis.crypto?.getRandomValues(bytes) ?? bytes.map(() => 256 * Math.random());
}
