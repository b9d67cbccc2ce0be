import { test as base, type TestAPI } from "vitest";
import type { CreateHarness } from "./harness.ts";
import { createWorld, expectSound, type World } from "./world.ts";

export type StoreTest = TestAPI<{ world: World }>;

/** A test with an empty store of its own. Whatever it did, the store must be sound afterwards. */
export function createStoreTest(createHarness: CreateHarness): StoreTest {
  return base.extend<{ world: World }>({
    world: async ({}, use) => {
      const harness = await createHarness();
      await use(createWorld(harness));
      expectSound(await harness.snapshot());
      await harness.close();
    },
  });
}
