import fc from "fast-check";
import { createHash } from "node:crypto";
import { seedBase } from "./seed.ts";

// Whoever repeats a test on the same day finds what was found.
fc.configureGlobal({ seed: createHash("sha256").update(seedBase()).digest().readInt32BE() });

export { fc };
