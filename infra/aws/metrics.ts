import { Duration } from 'aws-cdk-lib';
import { Metric } from 'aws-cdk-lib/aws-cloudwatch';

/** Where the functions' own metrics are found: the namespace and service name that their environment sets. */
const NAMESPACE = 'Gleaner';
const DIMENSIONS = { service: 'gleaner' };

/** One of the functions' own metrics (shared/aws/metrics.ts), summed over `period` unless told otherwise. */
export function gleanerMetric(metricName: string, period = Duration.minutes(5), statistic = 'Sum'): Metric {
  return new Metric({ namespace: NAMESPACE, metricName, dimensionsMap: DIMENSIONS, period, statistic });
}
