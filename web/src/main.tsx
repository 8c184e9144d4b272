import { render } from 'preact';
import { THEME_CSS } from '../../src/view/theme.js';
import { App } from './app.js';
import 'uplot/dist/uPlot.min.css';
import './style.css';
import './figures.css';

const theme = document.createElement('style');
theme.textContent = THEME_CSS;
document.head.append(theme);
render(<App />, document.getElementById('app')!);
