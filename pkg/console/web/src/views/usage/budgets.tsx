// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What budgets have left.
import { get, inNamespace } from '../../api/client';
import type { Budget } from '../../api/kinds';
import { useLoad } from '../../api/load';
import { may } from '../../api/may';
import type { List } from '../../api/types';
import { namespace } from '../../router';
import { clock, short } from '../../ui/format';
import { Failure } from '../../ui/states';
import { Text } from '../../ui/text';

// A budget's figures are computed when it is read, so they are read again now and then instead of being watched.
const every = 15_000;

export function Budgets() {
  const list = useLoad(`${namespace()}/${may('list', 'budgets')}`, (signal) => get<List<Budget>>(inNamespace('budgets'), signal), every);
  const items = list.data.value?.items ?? [];
  if (list.error.value && items.length === 0) return <Failure error={list.error.value} retry={list.reload} />;
  if (items.length === 0) return null;
  return (
    <section>
      <h2>Budgets</h2>
      <div class="scroll-x" tabIndex={0} role="region" aria-label="Budgets">
        <table aria-label="Budgets">
          <thead><tr><th class="wide" scope="col">Budget</th><th scope="col">Used</th><th class="number" scope="col">Spent</th><th class="number" scope="col">Reserved</th><th class="number" scope="col">Limit</th><th class="number minor" scope="col">Renews</th></tr></thead>
          <tbody>{items.map((b) => <Row key={b.metadata.name} budget={b} />)}</tbody>
        </table>
      </div>
    </section>
  );
}

function Row({ budget }: { budget: Budget }) {
  const s = budget.status ?? {};
  const money = s.cost;
  const unit = money ? ` ${money.currency}` : '';
  const show = (n: number | undefined, m: string | undefined) => (money ? `${Number(m ?? 0).toLocaleString('en', { maximumFractionDigits: 4 })}${unit}` : short(n ?? 0));
  const spent = money ? Number(money.spent) : (s.spent ?? 0);
  const reserved = money ? Number(money.reserved) : (s.reserved ?? 0);
  const limit = money ? Number(money.limit) : (s.limit ?? 0);
  const part = limit > 0 ? Math.min(1, (spent + reserved) / limit) : 0;
  return (
    <tr data-step tabIndex={-1}>
      <td class="wide"><Text>{budget.metadata.name}</Text>{budget.spec.perIdentity && <div class="muted small">for each identity; shown is the busiest</div>}</td>
      <td><meter class={part >= 1 ? 'full' : ''} min={0} max={1} high={0.8} optimum={0} value={part} aria-label={`${Math.round(part * 100)} percent of ${budget.metadata.name}`} /> {Math.round(part * 100)} %</td>
      <td class="number">{show(s.spent, money?.spent)}</td>
      <td class="number">{show(s.reserved, money?.reserved)}</td>
      <td class="number">{show(s.limit, money?.limit)} a {budget.spec.window}</td>
      <td class="number minor">{clock(s.renewsAt)}</td>
    </tr>
  );
}
