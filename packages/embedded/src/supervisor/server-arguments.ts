import type { SupervisorConfig } from "../supervisor-config.ts";

/** The command line of the server. Nothing is kept in the cluster, so every start decides anew. */
export function serverArguments(
  cluster: string,
  port: number,
  config: Pick<SupervisorConfig, "durable" | "settings">,
): readonly string[] {
  const settings = {
    timezone: "UTC",
    log_timezone: "UTC",
    ...(config.durable ? {} : { fsync: "off", synchronous_commit: "off", full_page_writes: "off" }),
    ...config.settings,
    listen_addresses: "127.0.0.1",
    port: String(port),
    unix_socket_directories: "",
  };
  return ["-D", cluster, ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`])];
}
