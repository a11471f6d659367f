#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Both README commands on a machine that has nothing yet: a bare Debian 12 in a folder of its own, with a clone of HEAD.
# Says how long each took, and the last lines of what failed. Needs root (or a user namespace with a range of ids),
# mmdebstrap, and 12 GB under TMPDIR. Takes what the two commands take: an hour on 2 cores.
# Usage: fresh.sh [COMMAND...] (ci/check.sh ci/test.sh)
# shellcheck source=ci/lib.sh
. "$(dirname "$0")/lib.sh"
[ $# -gt 0 ] || set -- ci/check.sh ci/test.sh
command -v mmdebstrap >/dev/null || {
  echo "fresh: install mmdebstrap (apt-get install mmdebstrap)" >&2
  exit 1
}
if [ "$(id -u)" -ne 0 ]; then
  exec unshare --user --map-root-user --map-auto --mount "$root/ci/fresh.sh" "$@"
fi

machine=$(mktemp -d "${TMPDIR:-/tmp}/assay-fresh.XXXXXX")
logs=$root/build/fresh
rm -rf "$logs"
mkdir -p "$logs"
trap 'remove_debian "$machine"' EXIT

step "a bare Debian 12 in $machine"
bare_debian "$machine"
git clone --quiet --no-hardlinks "$root" "$machine/root/assay"

failed=0
for command in "$@"; do
  log=$logs/$(basename "$command" .sh).log
  begin=$SECONDS code=0
  step "$command (log: ${log#"$root"/})"
  in_debian "$machine" /root/assay "$command" >"$log" 2>&1 || code=$?
  printf '%s: exit %d, %d s\n' "$command" "$code" $((SECONDS - begin))
  if [ $code -ne 0 ]; then
    tail -n 40 "$log"
    failed=1
  fi
done
exit $failed
