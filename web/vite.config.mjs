// The dashboard, built into dist/web: the package ships it, and it needs nothing from the network.
import { defineConfig } from 'vite';

export default defineConfig({
  base: './',
  build: {
    outDir: '../dist/web',
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: false,
    assetsDir: '.',
  },
});
