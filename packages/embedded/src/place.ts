import { readFile, readlink } from "node:fs/promises";

/**
 * Names the machine, or the container on it: processes in the same place see each other's numbers
 * and reach each other's ports. A folder may be mounted in several.
 */
export async function findPlace(): Promise<string> {
  if (process.platform !== "linux") return process.platform;
  const parts = [
    readFile("/proc/sys/kernel/random/boot_id", "utf8"),
    readlink("/proc/self/ns/pid"),
    readlink("/proc/self/ns/net"),
  ];
  const known = await Promise.all(parts.map((part) => part.catch(() => "unknown")));
  return known.map((part) => part.trim()).join(" ");
}
