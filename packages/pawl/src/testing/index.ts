export { createMemoryStore, type MemoryStore, type MemoryStoreOptions } from "../memory/memory-store.ts";
export type { StoreSnapshot } from "../store/snapshot.ts";
export { createManualClock, type ManualClock } from "./manual-clock.ts";
