import { Metrics, MetricUnit } from '@aws-lambda-powertools/metrics';
import type { RunMetrics } from '../core/metrics.ts';

/** Writes the figures of a run to the log in CloudWatch's embedded metric format: no call, no permission. */
export function emitMetrics(run: RunMetrics, verb: string): void {
  const metrics = new Metrics({ namespace: 'Gleaner', serviceName: 'gleaner' });
  const count = (name: string, value: number) => metrics.addMetric(name, MetricUnit.Count, value);
  count('Deleted', run.deleted);
  count('Failed', run.failed);
  count('Deferred', run.deferred);
  count('InterfacesReclaimed', run.interfacesReclaimed);
  metrics.addMetric('DiskGiBReclaimed', MetricUnit.NoUnit, run.diskGiBReclaimed);
  count('BreakerTripped', run.breakerTripped ? 1 : 0);
  count('ItemGivenUp', run.givenUp);
  if (verb === 'sweep') {
    count('SweepFinished', 1);
    metrics.addMetric('EstimatedMonthlyCost', MetricUnit.NoUnit, run.monthlyCostUsd);
    metrics.addMetric('OldestOrphanAgeSeconds', MetricUnit.Seconds, run.oldestOrphanAgeS ?? 0);
  }
  metrics.publishStoredMetrics();
  for (const [reason, kept] of Object.entries(run.keptByReason)) {
    const single = metrics.singleMetric();
    single.addDimension('reason', reason);
    single.addMetric('Kept', MetricUnit.Count, kept);
  }
}
