import type { Alarm } from 'aws-cdk-lib/aws-cloudwatch';
import type { Table } from 'aws-cdk-lib/aws-dynamodb';
import { Construct } from 'constructs';
import { createAlarms } from './alarms.ts';
import { createDashboard } from './dashboard.ts';
import { createFunctions, type Functions } from './functions.ts';
import { createTable } from './ledger.ts';
import { createQueues, type Queues } from './queues.ts';
import { type GleanerProps, readSettings } from './settings.ts';
import { createRules, createSchedule } from './triggers.ts';

export type { GleanerProps } from './settings.ts';

/**
 * Gleaner in one account and region: functions, queues, ledger, rules, schedule, alarms, dashboard. For use in any app.
 * Throws InputError naming the property that is wrong.
 */
export class Gleaner extends Construct {
  readonly functions: Functions;
  readonly queues: Queues;
  readonly table: Table;
  readonly alarms: readonly Alarm[];

  constructor(scope: Construct, id: string, props: GleanerProps = {}) {
    super(scope, id);
    const settings = readSettings(props);
    this.table = createTable(this, settings);
    this.queues = createQueues(this, settings.settleS);
    this.functions = createFunctions(this, settings, this.table, this.queues);
    createRules(this, this.queues);
    createSchedule(this, settings.scheduleMinutes, this.functions.schedule, this.queues.deadLetters);
    this.alarms = createAlarms(this, settings, this.functions, this.queues);
    createDashboard(this, this.functions, this.queues, this.alarms);
  }
}
