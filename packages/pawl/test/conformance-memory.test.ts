import { describeStore } from "./conformance/describe-store.ts";
import { createMemoryHarness } from "./memory-harness.ts";

describeStore("the memory store", async () => createMemoryHarness());
