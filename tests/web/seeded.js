/** FOR TESTS ONLY: whoever knows the seed knows the truth. Block i is SHA-256(seed in UTF-8, a slash, i in decimal). */

import { sha256, utf8 } from "/client/sha256.js";

export class SeededBytes {
  constructor(seed) {
    Object.assign(this, { seed, block: 0, left: [] });
  }

  take(count) {
    while (this.left.length < count) this.left.push(...sha256(utf8(`${this.seed}/${this.block++}`)));
    return Uint8Array.from(this.left.splice(0, count));
  }
}
