import { setGlobalLogLevel } from 'spacetimedb';
import { createRoot } from 'react-dom/client';
import { App } from './App';
import './styles/theme.css';
import './styles/shell.css';
import './styles/parts.css';
import './styles/pages.css';

setGlobalLogLevel('warn');
createRoot(document.getElementById('root')!).render(<App />);
