import { paint } from '../output/style.ts';
import { awsAct } from './aws-act.ts';
import { azureAct } from './azure-act.ts';
import { Stage } from './stage.ts';

/** One act a cloud, each on its simulator. @returns 0 when every act ended as it says, 1 otherwise */
export async function demo(): Promise<number> {
  const stage = new Stage();
  stage.say(
    paint('bold', 'Gleaner demo: simulated clouds on this machine. Nothing real is touched, nothing is sent anywhere.'),
  );
  for (const act of [awsAct, azureAct]) await act(stage);
  return stage.end();
}
