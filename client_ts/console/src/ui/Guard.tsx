// What a page cannot show must not take the others with it.

import { Component, type ReactNode } from 'react';
import { Mistake } from './parts';

interface Props {
  /** Where one is; at another place it is tried again. */
  place: string;
  children: ReactNode;
}

interface State {
  error: Error | null;
  place: string;
}

export class Guard extends Component<Props, State> {
  override state: State = { error: null, place: this.props.place };

  static getDerivedStateFromError(error: Error): Partial<State> {
    return { error };
  }

  static getDerivedStateFromProps({ place }: Props, last: State): Partial<State> | null {
    return place === last.place ? null : { place, error: null };
  }

  override render(): ReactNode {
    if (this.state.error === null) return this.props.children;
    return (
      <div className="page-error">
        <Mistake title="The console has a fault, and cannot show this">{this.state.error.message}</Mistake>
        <button className="button" onClick={() => this.setState({ error: null })}>
          Try again
        </button>
      </div>
    );
  }
}
