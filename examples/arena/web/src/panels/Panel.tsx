import type { ReactNode } from 'react';
import { Icon, type IconName } from '../ui/icons';

interface Props {
  icon: IconName;
  title: string;
  note?: ReactNode;
  className?: string;
  children: ReactNode;
}

export function Panel({ icon, title, note, className = '', children }: Props) {
  return (
    <section className={`panel ${className}`} aria-label={title}>
      <header className="panel-head">
        <Icon name={icon} size={17} />
        <h2>{title}</h2>
        <div className="panel-note">{note}</div>
      </header>
      {children}
    </section>
  );
}

/** What one sees where there is nothing. */
export function Empty({ icon, children }: { icon: IconName; children: ReactNode }) {
  return (
    <div className="empty">
      <Icon name={icon} size={22} />
      <p>{children}</p>
    </div>
  );
}
