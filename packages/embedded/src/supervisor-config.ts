import type { Binaries } from "./binaries.ts";
import type { ServerUser } from "./server-user.ts";

/** What a supervisor is told when it is started. */
export interface SupervisorConfig {
  readonly dir: string;
  /** Whether to remove the folder at the end. */
  readonly temporary: boolean;
  readonly binaries: Binaries;
  readonly user?: ServerUser | undefined;
  readonly port: number;
  readonly strictPort: boolean;
  readonly durable: boolean;
  readonly settings: Readonly<Record<string, string>>;
}
