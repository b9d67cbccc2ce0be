import { vi } from "vitest";

// Each test starts servers, on a machine that may have other things to do.
vi.setConfig({ testTimeout: 90_000 });
