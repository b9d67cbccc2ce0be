/** What a process takes of its machine, since it was last read. */
interface Load {
  readonly memoryBytes: number;
  /** Processor time per time: 1 is one core. */
  readonly cpuRatio: number;
  /** The longest that the event loop was late. */
  readonly lagMs: number;
}

export interface LoadMeter {
  read(): Load;
  /** Measures no more. */
  stop(): void;
}
