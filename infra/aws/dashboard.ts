import { Duration } from 'aws-cdk-lib';
import {
  type Alarm,
  AlarmStatusWidget,
  Dashboard,
  GraphWidget,
  type IMetric,
  MathExpression,
  SingleValueWidget,
} from 'aws-cdk-lib/aws-cloudwatch';
import type { Construct } from 'constructs';
import type { Functions } from './functions.ts';
import { gleanerMetric } from './metrics.ts';
import type { Queues } from './queues.ts';

const DAY = Duration.days(1);

/** Which reasons there are is not known before they occur. */
const KEPT_BY_REASON = new MathExpression({
  expression: `SEARCH('{Gleaner,reason,service} MetricName="Kept"', 'Maximum', 3600)`,
  label: '',
  usingMetrics: {},
  period: Duration.hours(1),
});

/** One page: what was reclaimed, what goes wrong, what waits. */
export function createDashboard(
  scope: Construct,
  functions: Functions,
  queues: Queues,
  alarms: readonly Alarm[],
): Dashboard {
  const dashboard = new Dashboard(scope, 'Dashboard', { defaultInterval: Duration.days(7) });
  dashboard.addWidgets(
    new SingleValueWidget({
      title: 'Last day',
      width: 12,
      metrics: [
        gleanerMetric('Deleted', DAY),
        gleanerMetric('DiskGiBReclaimed', DAY),
        gleanerMetric('InterfacesReclaimed', DAY),
      ],
    }),
    new SingleValueWidget({
      title: 'Orphans now',
      width: 12,
      metrics: [
        gleanerMetric('EstimatedMonthlyCost', Duration.hours(1), 'Maximum'),
        gleanerMetric('OldestOrphanAgeSeconds', Duration.hours(1), 'Maximum'),
      ],
    }),
  );
  dashboard.addWidgets(
    graph(
      'Outcomes',
      ['Deleted', 'Failed', 'Deferred', 'ItemGivenUp'].map((name) => gleanerMetric(name)),
      8,
    ),
    graph(
      'Sweeps',
      ['SweepFinished', 'BreakerTripped'].map((name) => gleanerMetric(name)),
      8,
    ),
    graph('Kept, by reason', [KEPT_BY_REASON], 8),
  );
  const { vmEvent, schedule, invoke, reap } = functions;
  const all = [vmEvent, schedule, invoke, reap];
  dashboard.addWidgets(
    graph(
      'Function errors',
      all.map((one) => one.metricErrors()),
    ),
    graph(
      'Function duration',
      all.map((one) => one.metricDuration({ statistic: 'p99' })),
    ),
  );
  const { claims, events, work, reap: toReap, deadLetters } = queues;
  dashboard.addWidgets(
    graph(
      'Messages waiting',
      [claims, events, work, toReap].map((queue) => queue.metricApproximateNumberOfMessagesVisible()),
    ),
    graph('Dead letters', [deadLetters.metricApproximateNumberOfMessagesVisible({ statistic: 'Maximum' })]),
  );
  dashboard.addWidgets(new AlarmStatusWidget({ title: 'Alarms', width: 24, alarms: [...alarms] }));
  return dashboard;
}

function graph(title: string, left: IMetric[], width = 12): GraphWidget {
  return new GraphWidget({ title, left, width });
}
