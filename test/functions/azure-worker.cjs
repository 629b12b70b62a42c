/**
 * Loads the bundle as Azure's worker does, with this in place of `@azure/functions-core`, which the worker supplies:
 * records what is registered, and calls it with the raw payloads of the worker's protocol. Speaks over the process's IPC.
 */
const Module = require('node:module');
const { join } = require('node:path');
const { pathToFileURL } = require('node:url');

const registered = new Map();
let model;
class Disposable {}
const core = {
  version: '3.9.1',
  setProgrammingModel: (given) => {
    model = given;
  },
  getProgrammingModel: () => model,
  registerFunction: (metadata, callback) => {
    registered.set(metadata.name, { metadata, callback });
    return new Disposable();
  },
  registerHook: () => new Disposable(),
  log: () => {},
  Disposable,
};

const load = Module._load;
Module._load = (request, ...rest) => (request === '@azure/functions-core' ? core : load(request, ...rest));

const folder = process.argv[2];
const started = performance.now();
void import(pathToFileURL(join(folder, require(join(folder, 'package.json')).main)).href).then(() => {
  const loadMs = performance.now() - started;
  // What is registered is asked for right after loading: what waits for anything is not found.
  process.send({ loadMs, functions: [...registered.values()].map(({ metadata }) => metadata) });
});

process.on('message', async ({ seq, name, data, triggerMetadata }) => {
  const { metadata, callback } = registered.get(name);
  const logs = [];
  const [trigger] = Object.entries(metadata.bindings).find(([, { type }]) => /trigger$/i.test(type));
  const invocation = model.getInvocationModel({
    invocationId: `${seq}`,
    metadata,
    request: { invocationId: `${seq}`, inputData: [{ name: trigger, data }], triggerMetadata: triggerMetadata ?? {} },
    log: (level, category, message) => logs.push({ level, category, message }),
    state: undefined,
  });
  try {
    const { context, inputs } = await invocation.getArguments();
    const result = await invocation.invokeFunction(context, inputs, callback);
    process.send({ seq, logs, response: await invocation.getResponse(context, result) });
  } catch (error) {
    const isError = error instanceof Error;
    process.send({ seq, logs, error: isError ? `${error.name}: ${error.message}` : `no Error: ${String(error)}` });
  }
});
