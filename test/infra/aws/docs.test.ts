import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SETTING_NAMES } from '../../../infra/aws/settings.ts';
import { CANDIDATE_TAG_KEYS, CANDIDATE_TAG_PREFIXES } from '../../../shared/aws/tags.ts';
import { allowedActions } from '../../support/iam.ts';
import { templateOf } from './support.ts';

const page = readFileSync(join(import.meta.dirname, '../../../docs/aws.md'), 'utf8');
const rowsUnder = (heading: string) =>
  (page.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? '').split('\n').filter((line) => /^\| [^-]/.test(line));
const quoted = (text: string) => [...text.matchAll(/`([^`]+)`/g)].map(([, code]) => code ?? '');

describe('docs/aws.md', () => {
  it('lists every setting, and no other', () => {
    const listed = rowsUnder('Settings')
      .slice(1)
      .map((row) => quoted(row)[0]);
    expect(new Set(listed)).toEqual(new Set(SETTING_NAMES));
  });

  it('lists every action of every role, and no other', () => {
    const everything = { mode: 'enforce', regions: ['all'], policy: { snapshot: 'before-delete' } } as const;
    const template = templateOf(everything);
    const allowed = ['DeciderRole', 'DeleterRole', 'SchedulerRole'].flatMap((role) => allowedActions(template, role));
    const columns = rowsUnder('Permissions').map((row) => row.split(' | ')[1] ?? '');
    const names = columns.flatMap((column) => {
      // `service:Action`, then further actions of the same service without it.
      let service = '';
      return quoted(column).flatMap((code) => {
        const [, prefix, action] = /^(?:([a-z0-9-]+):)?([A-Z]\w+)$/.exec(code) ?? [];
        service = prefix ?? service;
        return action ? [`${service}:${action}`] : [];
      });
    });
    expect([...new Set(names)].toSorted()).toEqual([...new Set(allowed)].toSorted());
  });

  it('lists the tags that make a candidate', () => {
    for (const key of CANDIDATE_TAG_KEYS) expect(page).toContain(`\`${key}\``);
    for (const prefix of CANDIDATE_TAG_PREFIXES) expect(page).toContain(`\`${prefix}<c>\``);
  });
});
