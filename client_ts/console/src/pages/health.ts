import { useEffect, useState } from 'react';
import { useDatabase } from '../live/hooks';

export interface Health {
  well: boolean;
  problems: string[];
  numbers: Record<string, number>;
}

const EVERY_MS = 4000;

/** What `/v1/health` says of this database. */
export function useHealth(): Health | null {
  const { api, name } = useDatabase();
  const [health, setHealth] = useState<Health | null>(null);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | null = null;
    let over = false;
    const ask = async (): Promise<void> => {
      try {
        const body = await api.json<{ databases: Record<string, { problems: string[]; numbers?: Record<string, number> }> }>('/v1/health');
        const own = body.databases[name];
        if (!over && own) setHealth({ well: own.problems.length === 0, problems: own.problems, numbers: own.numbers ?? {} });
      } catch {
        // the lost connection is shown elsewhere
      }
      if (!over) timer = setTimeout(() => void ask(), EVERY_MS);
    };
    void ask();
    return () => {
      over = true;
      if (timer !== null) clearTimeout(timer);
    };
  }, [api, name]);
  return health;
}
