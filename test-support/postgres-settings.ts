/** What the tests' cluster is started with, on top of `durable: false`. */
export const postgresSettings = {
  // Several test processes at once, some of which start a dozen workers with a pool each.
  max_connections: "300",
  // For tests that count calls, rows, buffers and WAL.
  shared_preload_libraries: "pg_stat_statements",
  "pg_stat_statements.track": "all",
  track_io_timing: "on",
  // For tests that leave a transaction in doubt.
  max_prepared_transactions: "20",
} as const;
