/** The app of `cdk deploy`. Settings come by context: `cdk deploy -c mode=enforce -c policy=policy.yaml`. */
import { App, CfnOutput, Stack, Validations } from 'aws-cdk-lib';
import { AwsSolutionsChecks } from 'cdk-nag';
import { InputError } from '../../shared/core/errors.ts';
import { Gleaner } from './gleaner.ts';
import { propsFromContext } from './settings.ts';

function synthesise(): void {
  // Else CDK synthesises at exit, and half a tree after a wrong setting.
  const app = new App({ autoSynth: false });
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
  const stack = new Stack(app, 'Gleaner', {
    description: 'Deletes the network interfaces and disks that virtual machines leave behind',
  });
  const gleaner = new Gleaner(stack, 'Gleaner', propsFromContext(app.node));
  new CfnOutput(stack, 'InvokeFunction', {
    value: gleaner.functions.invoke.functionName,
    description: 'Function to call by hand: plan, sweep, explain, history',
  });
  new CfnOutput(stack, 'LedgerTable', {
    value: gleaner.table.tableName,
    description: 'Ledger, for gleaner --ledger dynamodb:<table>',
  });
  app.synth();
}

try {
  synthesise();
} catch (error) {
  if (!(error instanceof InputError)) throw error;
  // The field and what is wrong with it; where in the code it was found helps nobody.
  console.error(error.message);
  process.exitCode = 1;
}
