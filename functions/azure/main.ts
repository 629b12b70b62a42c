/**
 * The function app. Everything is registered before anything else happens, and reads no setting: an entry that throws or
 * waits shows no functions at all. What the handlers need is loaded at their first call.
 */
import { app } from '@azure/functions';

/** The setting that names the storage account, and `__queueServiceUri` and the like beneath it. */
const connection = 'GLEANER_STORAGE';

app.eventGrid('vmEvent', {
  handler: async (event, context) => (await import('./vm-event.ts')).handler(event, context),
});
app.storageQueue('vmEventWork', {
  queueName: 'gleaner-events',
  connection,
  handler: async (message, context) => (await import('./vm-event.ts')).work(message, context),
});
app.storageQueue('reap', {
  queueName: 'gleaner-reap',
  connection,
  handler: async (message, context) => (await import('./reap.ts')).handler(message, context),
});
app.timer('schedule', {
  schedule: '%GLEANER_SCHEDULE%',
  handler: async (timer, context) => (await import('./schedule.ts')).handler(timer, context),
});
app.storageQueue('sweepWork', {
  queueName: 'gleaner-work',
  connection,
  handler: async (message, context) => (await import('./schedule.ts')).work(message, context),
});
app.http('invoke', {
  methods: ['POST'],
  authLevel: 'function',
  handler: async (request, context) => (await import('./invoke.ts')).handler(request, context),
});
