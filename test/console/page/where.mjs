// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Where every view is.

export const { APPROVAL, CONVERSATION } = process.env;

// pressed presses a key that opens a form.
async function pressed(page, key, label) {
  await page.getByRole('button', { name: /Approve|Fork from here/ }).first().waitFor();
  await page.keyboard.press(key);
  await page.getByLabel(label).waitFor();
}

// selected selects the first tasks of a list, and presses the button of a key.
async function selected(page, key) {
  await page.getByLabel('Select all rows').waitFor(); // once it is known what the viewer may do
  for (const k of ['j', 'x', 'j', 'x', 'j', 'x']) await page.keyboard.press(k);
  await page.getByText('3 selected').waitFor();
  if (!key) return;
  await page.keyboard.press(key);
  await page.keyboard.press('Enter');
  await page.getByText(/^(Delete|Cancel) 3 tasks,/).waitFor();
}

// views are a path each, a text that the view shows, and, where that is not all, what somebody does then.
export const views = {
  now: ['/', 'waiting for a decision'],
  tasks: ['/tasks', 'plain'],
  found: ['/tasks?phase=failed&agent=helper&labels=team%3Dweb&started=24h', 'lighthouse'],
  selected: ['/tasks?sort=name', 'plain', (page) => selected(page)],
  deleting: ['/tasks?sort=name', 'plain', (page) => selected(page, 'D')],
  cancelling: ['/tasks?sort=name', 'plain', (page) => selected(page, 'C')],
  failed: ['/tasks/story', 'Timed out:'],
  new: ['/new', 'Create the task'],
  again: ['/new?from=story', 'with changes'],
  run: ['/tasks/plain#seq=5', 'Part 4'],
  waiting: ['/tasks/asks', 'waits for a decision'],
  talking: ['/tasks/talking#seq=2', 'What was said'],
  failures: ['/tasks/plain?show=failures', 'failure 9'],
  transcript: ['/tasks/plain?tab=transcript', 'Words'],
  trace: ['/tasks/plain?tab=trace', 'no model request'],
  result: ['/tasks/plain?tab=result', 'no result yet'],
  artifacts: ['/tasks/plain?tab=artifacts', 'report.txt'],
  'no-artifacts': ['/tasks/long?tab=artifacts', 'no artifacts'],
  log: ['/tasks/plain?tab=log', 'It ends.'],
  yaml: ['/tasks/plain?tab=yaml', 'kind: Task'],
  approvals: ['/approvals', 'remove the old files'],
  approval: [`/approvals/${APPROVAL}`, 'rm -r old'],
  deciding: [`/approvals/${APPROVAL}`, 'rm -r old', (page) => pressed(page, 'y', 'Approve: a reason')],
  declining: [`/approvals/${APPROVAL}`, 'rm -r old', (page) => pressed(page, 'n', 'Decline: a reason')],
  forking: ['/tasks/plain#seq=5', 'Part 4', (page) => pressed(page, 'f', 'Prompt')],
  help: ['/tasks', 'plain', async (page) => (await page.keyboard.press('?'), await page.getByRole('dialog').waitFor())],
  tree: ['/tree/plain', 'delegated nothing'],
  sessions: ['/sessions', 'talk'],
  session: ['/sessions/talk', 'Nothing of note'],
  counted: ['/sessions/talk', 'Events of its tasks'],
  chat: ['/chat', 'Ask for something to be done'],
  usage: ['/usage', 'No model was asked'],
  agents: ['/usage?by=agent', 'No model was asked'],
  budgets: ['/usage?by=model&period=7d', 'Budgets'],
  catalogue: ['/catalogue', 'helper'],
  providers: ['/catalogue?kind=providers', 'vendor'],
  tools: ['/catalogue?kind=tools', 'weather'],
  builtin: ['/catalogue/catalogtools/file_read', 'Built in'],
  skills: ['/catalogue?kind=skills', 'letters'],
  skill: ['/catalogue/skills/letters', 'greeting'],
  entry: ['/catalogue/agents/helper', 'Be brief.'],
  proposals: ['/memory', 'Staging is rebuilt at night'],
  memories: ['/memory?tab=memories', 'Deployments are on Tuesdays'],
  monitors: ['/monitors', 'shop'],
  monitor: ['/monitors/shop', 'A window'],
  'pull-request': ['/monitors/shop/shop.pr-7', 'No lock'],
  plan: ['/monitors/shop/shop.issue-9', 'Plan that waits for an approval'],
  gateways: ['/gateways', 'chat'],
  conversations: ['/gateways/chat', 'And the one after it?'],
  conversation: [`/gateways/chat/${CONVERSATION}`, 'On Tuesday.'],
  rejected: ['/gateways/chat?tab=events&show=rejected', 'Open the door.'],
  'dead-letters': ['/gateways/chat?tab=deliveries', 'It may have been posted'],
  bindings: ['/gateways/chat?tab=bindings', 'chat-room'],
  compare: ['/compare?a=plain&b=long', 'They differ from the first step on'],
  missing: ['/tasks/nobody', 'There is no task of this name'],
  nowhere: ['/no/such/page', 'There is no such page'],
};
