import { RemovalPolicy } from 'aws-cdk-lib';
import { AttributeType, BillingMode, Table, TableEncryption } from 'aws-cdk-lib/aws-dynamodb';
import type { Construct } from 'constructs';
import type { Settings } from './settings.ts';

/** The ledger's table: claims, marks, intents, records of deletions. Kept when the stack goes, unless told otherwise. */
export function createTable(scope: Construct, settings: Settings): Table {
  return new Table(scope, 'Ledger', {
    partitionKey: { name: 'pk', type: AttributeType.STRING },
    sortKey: { name: 'sk', type: AttributeType.STRING },
    billingMode: BillingMode.PAY_PER_REQUEST,
    timeToLiveAttribute: 'expires',
    pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
    encryption: TableEncryption.AWS_MANAGED,
    deletionProtection: settings.deletionProtection,
    removalPolicy: settings.removal === 'destroy' ? RemovalPolicy.DESTROY : RemovalPolicy.RETAIN,
  });
}
