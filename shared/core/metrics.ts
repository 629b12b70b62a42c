/** The figures of one run, for the cloud's metrics. */
export interface RunMetrics {
  readonly deleted: number;
  readonly failed: number;
  readonly deferred: number;
  /** Count by reason code. */
  readonly keptByReason: Readonly<Record<string, number>>;
  readonly diskGiBReclaimed: number;
  readonly interfacesReclaimed: number;
  /** Estimated cost of the orphans seen, US dollars a month at list prices. */
  readonly monthlyCostUsd: number;
  /** Seconds since the oldest orphan that is still there became one. */
  readonly oldestOrphanAgeS?: number;
  readonly breakerTripped: boolean;
  /** Items that went to the dead-letter queue. */
  readonly givenUp: number;
}
