// without-store.mjs <rank> <store> <program...>: runs a program as this rank; rank <rank> finds nothing where the store is, as
// on a host to which nobody has copied it. Needs root: it mounts an empty folder over the store, for that process alone.
import { spawn } from 'node:child_process';

const [without, store, ...program] = process.argv.slice(2);
const rank = process.env.OMPI_COMM_WORLD_RANK ?? process.env.PMI_RANK;
const hide = ['unshare', '--mount', 'sh', '-c', 'mount -t tmpfs none "$0" && exec "$@"', store];
const words = [...(rank === without ? hide : []), process.execPath, ...program];
const child = spawn(words[0], words.slice(1), { stdio: 'inherit' });
child.once('close', code => process.exit(code ?? 1));
