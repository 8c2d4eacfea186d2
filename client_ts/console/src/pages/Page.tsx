import { useDatabase } from '../live/hooks';
import type { Route } from '../route';
import type { IconName } from '../ui/icons';
import { Functions } from './Functions';
import { Logs } from './Logs';
import { ServerPage } from './Server';
import { Sql } from './Sql';
import { Tables } from './Tables';
import { WorkflowPage } from './Workflow';
import { Workflows } from './Workflows';

export interface PageInfo {
  path: string;
  title: string;
  icon: IconName;
  /** Pressed after `g`. */
  key: string;
}

export const PAGES: PageInfo[] = [
  { path: 'workflows', title: 'Workflows', icon: 'flow', key: 'w' },
  { path: 'tables', title: 'Tables', icon: 'table', key: 't' },
  { path: 'sql', title: 'SQL', icon: 'sql', key: 'q' },
  { path: 'calls', title: 'Calls', icon: 'call', key: 'c' },
  { path: 'server', title: 'Server', icon: 'server', key: 's' },
  { path: 'logs', title: 'Logs', icon: 'logs', key: 'l' },
];

export function Page({ route }: { route: Route }) {
  const { description } = useDatabase();
  switch (route.page) {
    case 'tables':
      return <Tables route={route} />;
    case 'sql':
      return <Sql route={route} />;
    case 'calls':
      return <Functions route={route} />;
    case 'server':
      return <ServerPage />;
    case 'logs':
      return <Logs />;
    default:
      if (!description.workflows) return <Tables route={{ ...route, item: null }} />;
      if (route.item !== null && /^\d+$/.test(route.item)) return <WorkflowPage id={BigInt(route.item)} key={route.item} />;
      return <Workflows route={route} />;
  }
}
