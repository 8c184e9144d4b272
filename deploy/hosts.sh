#!/usr/bin/env bash
# deploy/hosts.sh <store> <host:ranks,host:ranks,...> [flags of turbogr train]: plain hosts that this one reaches by ssh without
# a password. Copies the store to the same path on each of them, unless it lies on a disk that they share (SHARED=1), and
# trains. Every host needs Node, an MPI of the same version and turbogr under the same path as here.
set -euo pipefail
store=$(realpath "$1") hosts=$2
shift 2
ranks=0
for entry in ${hosts//,/ }; do
  ranks=$((ranks + ${entry#*:}))
  host=${entry%:*}
  if [ "${SHARED:-0}" = 0 ] && [ "$host" != "$(hostname)" ]; then
    ssh "$host" mkdir -p "$store"
    rsync --archive --delete "$store/" "$host:$store/"
  fi
done
npx turbogr launch -n "$ranks" --hosts "$hosts" --restarts 3 train "$store" --set batch.lanes="$ranks" "$@"
